"""The definitions that `workspace.yaml` loads: all stages in flow order, jobs, sensors, resources.

Nothing here may import mteb, torch or scikit-learn: the UI, `status` and `plan` start through it.
"""

from types import ModuleType

import dagster as dg

# The order of these imports is the order of the graph: each stage declares its assets on import
# and may depend only on what is declared above it.
# isort: off
from mteblite_assets.suites import assets as suites
from mteblite_assets.pools import assets as pools
from mteblite_assets.embeddings import assets as embeddings
from mteblite_assets.outcomes import assets as outcomes
from mteblite_assets.reference_scores import assets as reference_scores
from mteblite_assets.item_parameters import assets as item_parameters
from mteblite_assets.selections import assets as selections
from mteblite_assets.calibrations import assets as calibrations
from mteblite_assets.validation import assets as validation
from mteblite_assets.lite_scores import assets as lite_scores
from mteblite_assets.lite_scores.releases import assets as _releases  # noqa: F401 - declares

# isort: on
from mteblite_assets.graph.build import build_asset
from mteblite_assets.graph.declaration import declarations
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.source_sensor import official_results_job, official_results_sensor
from mteblite_assets.graph.upkeep import materialize_job
from mteblite_assets.reports import dbt_reports_assets
from mteblite_assets.sensors import (
    checkpoint_sensor,
    lite_scoring_job,
    suite_files_job,
    suite_files_sensor,
)
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.home import Home
from mteblite_resources.resources import default_resources

STAGES: dict[str, ModuleType] = {
    "suites": suites,
    "pools": pools,
    "embeddings": embeddings,
    "outcomes": outcomes,
    "reference_scores": reference_scores,
    "item_parameters": item_parameters,
    "selections": selections,
    "calibrations": calibrations,
    "validation": validation,
    "lite_scores": lite_scores,
}
"""Stage = folder = Dagster group = schema, in flow order; `dbt_reports` comes after."""


def build_definitions() -> dg.Definitions:
    """Return the definitions for the suites that the home folder and the package hold now."""
    home = Home.from_environment().prepare()
    partitions = Partitions.of(load_catalog(home))
    assets = [build_asset(declaration, partitions) for declaration in declarations().values()]
    lite_scoring = lite_scoring_job(partitions)
    suite_files = suite_files_job(partitions)
    read_official_results = official_results_job(partitions)
    upkeep = materialize_job()
    return dg.Definitions(
        assets=[*assets, dbt_reports_assets(home)],
        jobs=[upkeep, lite_scoring, suite_files, read_official_results],
        sensors=[
            checkpoint_sensor(lite_scoring, partitions),
            suite_files_sensor(suite_files, upkeep, partitions),
            official_results_sensor(read_official_results),
            automation_sensor(),
        ],
        resources={**default_resources(), "in_memory": dg.mem_io_manager},
        executor=dg.in_process_executor,
    )


def automation_sensor() -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that runs what an input's new data version made stale; on by default."""
    return dg.AutomationConditionSensorDefinition(
        "incremental",
        target=dg.AssetSelection.all(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=30,
    )


defs = build_definitions()
