"""The releases of a suite, made on request."""

from __future__ import annotations

from mteblite_assets.graph.content import content_version
from mteblite_assets.graph.declaration import Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.lite_scores.assets import lite_suite


@stage_asset(
    grain=Grain.SUITE,
    deps=["suite_tasks", "resolved_tasks", "pool_items", "kept_models", "lomo_predictions",
          "validation_metrics", "lite_suite"],
    tables=["lite_scores.releases"],
    code_version="1",
    on_request=True,
    keeps_rows=True,
    kinds=("duckdb", "parquet"),
)  # fmt: skip
def releases(work: Work) -> Produced:
    """One row per (suite, version): each exported release of the lite suite.

    A release is a folder that scores new models without this warehouse. It has selected items by
    id, parameters, calibrations, and hashes in the place of texts. Its version is a hash of its
    content. A release is never changed; a changed lite suite is a new release.
    """
    created_from = content_version(
        {name: work.rows(name).drop(columns="suite") for name in lite_suite.tables}
    )
    release = work.ports.releases.make(work.suite, created_from, work.inputs)
    rows = work.ports.releases.keep(release, work.rows("lite_scores.releases"))
    facts = {"version": release.version, "tasks": len(release.tasks), "items": release.n_items}
    return Produced({"lite_scores.releases": rows}, facts, version=release.content_hash)
