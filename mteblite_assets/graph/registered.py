"""Keeps `registered_models` as the suites have it, whoever added or removed a model."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.driver import forget_partitions, run_partitions
from mteblite_assets.graph.events import RunEvents
from mteblite_assets.graph.plan import suites_in_use
from mteblite_assets.suites.assets import registered_models
from mteblite_resources.workbench import Workbench


def record_registered_models(
    instance: dg.DagsterInstance, catalog: Catalog, bench: Workbench, in_turn: Collection[str] = ()
) -> None:
    """Run the stale partitions of `registered_models`, and forget those of suites that are gone.

    Of suites that nobody has built nothing is shown, so nothing is recorded.

    Args:
        instance: learns of what was made.
        catalog: suites and models as they are now.
        bench: the home.
        in_turn: suites whose partition the caller runs itself.
    """
    keys = [name for name in suites_in_use(bench.warehouse, catalog) if name not in in_turn]
    events = RunEvents(instance, instance.report_runless_asset_event, registered_models)
    for done in run_partitions(registered_models, keys, catalog, bench):
        if done.status != "fresh":
            events.log(done)
    recorded = bench.warehouse.ledger_keys(registered_models.name)
    forget_partitions(registered_models, sorted(recorded - set(catalog.suites)), bench)
