"""The home folder, which holds all files that the project writes."""

from __future__ import annotations

import errno
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
    # No limit over all: runs of commands count, too, and would stop the daemon.
    max_concurrent_runs: -1
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


def may_write(folder: Path) -> bool:
    """Say whether this process may make files in a folder."""
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


class HomeError(ValueError):
    """The home, or a place that belongs to it, cannot be used as it is."""

    def __init__(self, message: str, cause: OSError) -> None:
        super().__init__(message)
        self.is_file = isinstance(cause, FileExistsError | NotADirectoryError)
        """Whether a file stands where a folder is expected: nothing can be read there."""


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
        """Create the folders that users and sensors need, and Dagster's settings.

        A watched folder outside the home is not created: it may be a disk that is not mounted.

        Raises:
            HomeError: a path is a file, or cannot be written; names the variable and the path.
        """
        own = self.root / "checkpoints"
        folders = [self.root, self.suites, self.models, self.dagster]
        try:
            for folder in [*folders, own] if self.checkpoints == own else folders:
                folder.mkdir(parents=True, exist_ok=True)
            settings = self.dagster / "dagster.yaml"
            if not settings.exists() or settings.read_text().endswith(EARLIER):
                settings.write_text(DAGSTER_YAML)
        except OSError as error:
            raise self._error(error) from error
        if not may_write(self.root):
            raise self._error(PermissionError(errno.EACCES, "no right to write", str(self.root)))
        return self

    def notes(self) -> list[str]:
        """Return which of the other places that MTEBLITE_* variables name do not exist."""
        named = HomeVariables()
        places = {
            "MTEBLITE_CHECKPOINTS": named.checkpoints,
            "MTEBLITE_LOCAL_RESULTS": named.local_results,
            "MTEBLITE_OFFICIAL_SCORES": named.official_scores,
        }
        return [
            f"{variable} names {place}, which does not exist: mount or create it, or unset the "
            "variable"
            for variable, place in places.items()
            if place is not None and not Path(place).expanduser().exists()
        ]

    def _error(self, error: OSError) -> HomeError:
        """Return what is wrong with a place of the home."""
        place = Path(str(error.filename or self.root))
        below = place == self.root or self.root in place.parents
        variable = ENVIRONMENT if below or place in self.root.parents else "DAGSTER_HOME"
        root = self.root if variable == ENVIRONMENT else self.dagster
        if isinstance(error, FileExistsError | NotADirectoryError):
            blocking = next((p for p in (place, *place.parents) if p.is_file()), place)
            return HomeError(
                f"{variable} names {root}, but {blocking} is a file: name a folder", error
            )
        reason = f"{place}: {error.strerror}" if place != root else str(error.strerror)
        return HomeError(
            f"{variable} names {root}, which cannot be written ({reason}): make it writable, free "
            "space on its disk, or name another folder",
            error,
        )
