"""The four Dagster resources that a workbench is made from."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg

from mteblite.models.encoders import EncodingSettings
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite_resources.home import Home, HomeVariables
from mteblite_resources.workbench import Workbench

RESOURCE_KEYS = ("warehouse", "task_source", "encoders", "results_source")


class WarehouseResource(dg.ConfigurableResource):
    """The home folder with its DuckDB warehouse."""

    home: str = ""

    def get_home(self) -> Home:
        """Return the home; empty means MTEBLITE_HOME."""
        return Home(Path(self.home)) if self.home else Home.from_environment()


class TaskSourceResource(dg.ConfigurableResource):
    """Tasks of mteb, sample tasks and tasks of users' files."""

    attempts: int = 6
    wait_seconds: float = 0.5

    def get_tasks(self) -> MtebTasks:
        """Return the task source."""
        return MtebTasks(self.attempts, self.wait_seconds)


class EncodersResource(dg.ConfigurableResource):
    """Settings of encoding: batch size, device, precision, backend."""

    batch_size: int = 32
    device: str | None = None
    dtype: str | None = None
    backend: str = "torch"

    def get_settings(self) -> EncodingSettings:
        """Return the settings.

        Raises:
            ValueError: a value is not allowed; names the allowed ones.
        """
        return EncodingSettings(self.batch_size, self.device, self.dtype, self.backend)


class ResultsSourceResource(dg.ConfigurableResource):
    """A table or a folder of official results."""

    official_scores: str | None = None

    def get_official(self) -> Path | None:
        """Return the table or folder of official results, if one is set."""
        return Path(self.official_scores) if self.official_scores else None


def default_resources() -> dict[str, Any]:
    """Return the resources, configured by MTEBLITE_* environment variables."""
    found = EncodingSettings.from_environment()
    return {
        "warehouse": WarehouseResource(),
        "task_source": TaskSourceResource(),
        "encoders": EncodersResource(
            batch_size=found.batch_size,
            device=found.device,
            dtype=found.dtype,
            backend=found.backend,
        ),
        "results_source": ResultsSourceResource(official_scores=HomeVariables().official_scores),
    }


def workbench_of(resources: Any) -> Workbench:
    """Return the workbench of a run's resources."""
    return Workbench(
        resources.warehouse.get_home(),
        resources.task_source.get_tasks(),
        resources.encoders.get_settings(),
        resources.results_source.get_official(),
    )


def default_workbench() -> Workbench:
    """Return the workbench of the definitions' resources, outside of a run."""
    return workbench_of(SimpleNamespace(**default_resources()))
