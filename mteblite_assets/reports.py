"""The dbt reports as an asset: their inputs, and the run that builds them."""

from __future__ import annotations

from mteblite_assets.graph.declaration import Declaration, Produced
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_resources.reports import project_hashes


def _build(work: Work) -> Produced:
    """One row per (suite, model) and one per (suite, variant): the marts of all suites.

    dbt builds and tests them in a separate process with separate transactions. Its models are
    assets of the graph, and its tests are their checks.
    """
    from mteblite_assets.graph.dbt_assets import run_dbt

    events, failed = run_dbt(work.ports.reports)
    return Produced({}, {"events": len(events)}, events=events, failed=failed)


dbt_reports = Declaration(
    name="dbt_reports",
    stage="dbt_reports",
    grain=Grain.HOME,
    # The assets that write the tables of `models/staging/_sources.yml`, views resolved.
    deps=(
        "suite_tasks",
        "registered_models",
        "embedding_stats",
        "full_scores",
        "kept_models",
        "candidate_full_scores",
        "lomo_predictions",
        "validation_metrics",
        "lite_suite",
        "lite_scores",
    ),
    tables=(),
    self_written=("lite_leaderboard", "validation_summary"),
    hands_rows=False,
    code_version="1",
    compute=_build,
    settings=lambda _: project_hashes(),
    kinds=("duckdb", "dbt"),
)
