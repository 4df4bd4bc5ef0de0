"""The home folder, which holds all files that the project writes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

ENVIRONMENT = "MTEBLITE_HOME"

DAGSTER_YAML = """\
# Written once by mteblite; yours to edit.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 4
    # A new checkpoint waits for no other run; upkeep and runs of the UI go one by one.
    tag_concurrency_limits:
      - {key: mteblite/kind, value: scores, limit: 1}
      - {key: mteblite/kind, value: upkeep, limit: 1}
      - {key: dagster/from_ui, limit: 1}
      - {key: dagster/backfill, limit: 1}
"""
EARLIER = "concurrency:\n  runs:\n    max_concurrent_runs: 2\n"
"""How the file of an earlier version ends that nobody has edited."""


class HomeVariables(BaseSettings):
    """The MTEBLITE_* variables that name files and folders; an empty one counts as unset."""

    model_config = SettingsConfigDict(env_prefix="MTEBLITE_", env_ignore_empty=True)

    home: Path = Path(".mteblite")
    checkpoints: Path | None = None
    local_results: Path | None = None
    official_scores: str | None = None


@dataclass(frozen=True)
class Home:
    """Paths below the home folder."""

    root: Path

    @classmethod
    def from_environment(cls) -> Home:
        """Return the home of `MTEBLITE_HOME`, by default `.mteblite` in the current folder."""
        return cls(HomeVariables().home.expanduser().absolute())

    @property
    def snapshot(self) -> Path:
        """The warehouse for readers: whole partitions only, never written in place."""
        return self.root / "mteblite.duckdb"

    @property
    def writer(self) -> Path:
        """The warehouse for the writer; readers use the snapshot."""
        return self.root / "writer.duckdb"

    @property
    def suites(self) -> Path:
        """The user's suite files."""
        return self.root / "suites"

    @property
    def models(self) -> Path:
        """Models added by `mteblite models add` and by the checkpoint sensor."""
        return self.root / "models"

    @property
    def resolved(self) -> Path:
        """Resolved tasks of each suite, frozen with the version of mteb."""
        return self.root / "resolved"

    @property
    def pools(self) -> Path:
        """Pools with their texts, one folder each."""
        return self.root / "pools"

    @property
    def observations(self) -> Path:
        """Observations of set metrics, one array file per model and pool."""
        return self.root / "observations"

    @property
    def vectors(self) -> Path:
        """The embedding store."""
        return self.root / "vectors"

    @property
    def results(self) -> Path:
        """Result files of full runs of mteb, in the layout of mteb."""
        return self.root / "results"

    @property
    def local_results(self) -> Path:
        """Result files of the user's own mteb runs, for the source `local`."""
        named = HomeVariables().local_results
        return named.expanduser().absolute() if named else self.root / "local_results"

    @property
    def checkpoints(self) -> Path:
        """The watched folder, unless `MTEBLITE_CHECKPOINTS` names another."""
        named = HomeVariables().checkpoints
        return named.expanduser().absolute() if named else self.root / "checkpoints"

    @property
    def exports(self) -> Path:
        """Releases of lite suites, one folder per suite and version."""
        return self.root / "exports"

    @property
    def cache(self) -> Path:
        """Caches that can be deleted at any time."""
        return self.root / "cache"

    @property
    def dbt(self) -> Path:
        """The dbt target folder: manifest, compiled SQL, run results."""
        return self.root / "dbt"

    @property
    def dagster(self) -> Path:
        """The Dagster instance, unless `DAGSTER_HOME` names another."""
        named = os.environ.get("DAGSTER_HOME")
        return Path(named).expanduser().absolute() if named else self.root / "dagster"

    def prepare(self) -> Home:
        """Create the folders that users and sensors need, and Dagster's settings."""
        for folder in (self.root, self.suites, self.models, self.checkpoints, self.dagster):
            folder.mkdir(parents=True, exist_ok=True)
        settings = self.dagster / "dagster.yaml"
        if not settings.exists() or settings.read_text().endswith(EARLIER):
            settings.write_text(DAGSTER_YAML)
        return self
