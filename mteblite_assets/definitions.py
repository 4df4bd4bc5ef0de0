"""The definitions that `workspace.yaml` loads: all stages in flow order, jobs, sensors, resources.

The UI, `status` and `plan` load this module, so it must not import mteb, torch or scikit-learn.
"""

import dagster as dg

from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.build import build_asset
from mteblite_assets.graph.dbt_assets import dbt_report_assets
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.source_sensor import official_results_job, official_results_sensor
from mteblite_assets.graph.upkeep import materialize_job
from mteblite_assets.sensors import (
    checkpoint_sensor,
    lite_scoring_job,
    suite_files_job,
    suite_files_sensor,
)
from mteblite_resources.home import Home
from mteblite_resources.resources import default_resources
from mteblite_resources.workbench import Workbench


def build_definitions() -> dg.Definitions:
    """Return the definitions for the present suites of the home and the package.

    A home that does not exist is not created.
    """
    bench = Workbench(Home.from_environment())
    partitions = Partitions.of(bench.catalog())
    assets = [build_asset(a, partitions) for a in ASSETS if a.grain is not Grain.HOME]
    lite_scoring = lite_scoring_job(partitions)
    suite_files = suite_files_job(partitions)
    read_official_results = official_results_job(partitions)
    upkeep = materialize_job()
    return dg.Definitions(
        assets=[*assets, dbt_report_assets(bench.ports.reports)],
        jobs=[upkeep, lite_scoring, suite_files, read_official_results],
        sensors=[
            checkpoint_sensor(lite_scoring, partitions),
            suite_files_sensor(suite_files, upkeep, partitions),
            official_results_sensor(read_official_results),
            # Runs partitions with a new input version.
            dg.AutomationConditionSensorDefinition(
                "incremental",
                target=dg.AssetSelection.all(),
                default_status=dg.DefaultSensorStatus.RUNNING,
                minimum_interval_seconds=30,
            ),
        ],
        resources={**default_resources(), "in_memory": dg.mem_io_manager},
        executor=dg.in_process_executor,
    )


defs = build_definitions()
