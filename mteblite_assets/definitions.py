"""The definitions that `workspace.yaml` loads: all stages in flow order, jobs, sensors, resources.

The UI, `status` and `plan` load this module, so it must not import mteb, torch or scikit-learn.
"""

from dataclasses import replace

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.build import build_asset
from mteblite_assets.graph.dbt_assets import dbt_report_assets
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.plan import suites_in_use
from mteblite_assets.graph.upkeep import materialize_job
from mteblite_assets.sensors import upkeep_sensor
from mteblite_resources.home import Home
from mteblite_resources.resources import default_resources
from mteblite_resources.workbench import Workbench


def build_definitions() -> dg.Definitions:
    """Return the definitions; partitions are those that the suites in use ask for.

    A home that does not exist is not created.
    """
    bench = Workbench(Home.from_environment())
    partitions = Partitions.of(_catalog_in_use(bench))
    assets = [build_asset(a, partitions) for a in ASSETS if a.grain is not Grain.HOME]
    materialize = materialize_job()
    return dg.Definitions(
        assets=[*assets, dbt_report_assets(bench.ports.reports)],
        jobs=[materialize],
        sensors=[upkeep_sensor(materialize)],
        resources={**default_resources(), "in_memory": dg.mem_io_manager},
        executor=dg.in_process_executor,
    )


def _catalog_in_use(bench: Workbench) -> Catalog:
    catalog = bench.catalog()
    names = suites_in_use(bench.warehouse, catalog)
    return replace(catalog, suites={name: catalog.suites[name] for name in names})


defs = build_definitions()
