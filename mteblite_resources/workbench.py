"""One home with its warehouse, its catalog and the ports of its assets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mteblite.models.encoders import EncodingSettings
from mteblite.suites.catalog import Catalog
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite_resources.artifacts import Artifacts
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.full_scores import FullScores
from mteblite_resources.home import Home
from mteblite_resources.models import Models
from mteblite_resources.release_making import Releases
from mteblite_resources.reports import Reports
from mteblite_resources.score_sources import ScoreSources
from mteblite_resources.suite_tasks import SuiteTasks
from mteblite_resources.warehouse import Warehouse


@dataclass(frozen=True)
class Ports:
    """Access of compute functions to everything except the rows of the warehouse.

    mteb and torch are imported by the first call that needs them, so that planning and the UI
    start fast.
    """

    tasks: SuiteTasks
    models: Models
    artifacts: Artifacts
    full_scores: FullScores
    releases: Releases
    reports: Reports


class Workbench:
    """One home, as the driver and the command line use it."""

    def __init__(
        self,
        home: Home,
        tasks: MtebTasks | None = None,
        encoding: EncodingSettings | None = None,
        official: Path | None = None,
    ) -> None:
        """Make the warehouse and the ports; nothing is loaded yet.

        `official` is the Parquet table or folder of the source `official`.
        """
        self.home = home
        self.warehouse = Warehouse(home.writer, home.snapshot)
        source = tasks or MtebTasks()
        suite_tasks = SuiteTasks(home, source)
        models = Models(home, source, encoding or EncodingSettings())
        artifacts = Artifacts(home.pools, home.observations)
        sources = ScoreSources(home, official)
        self.ports = Ports(
            tasks=suite_tasks,
            models=models,
            artifacts=artifacts,
            full_scores=FullScores(sources, home, suite_tasks, models),
            releases=Releases(home.exports, artifacts),
            reports=Reports(home.dbt, home.writer, home.snapshot),
        )

    def catalog(self) -> Catalog:
        """Read the present suites and registered models."""
        return load_catalog(self.home)
