"""The dbt project of the reports: its files, its manifest, and the settings of runs on a home."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mteblite_resources.database.duckdb_files import log_of
from mteblite_resources.database.publication import copy_file
from mteblite_resources.database.relations import take_relations
from mteblite_resources.database.turns import TurnLock
from mteblite_resources.warehouse import LOCK_SECONDS, Warehouse

PROJECT = Path(__file__).resolve().parents[1] / "dbt_reports"


@dataclass(frozen=True)
class Reports:
    """dbt on one home.

    Attributes:
        target: folder of the manifest, compiled SQL and run results.
        writer: the warehouse's file, where the reports are stored.
        snapshot: its snapshot.
    """

    target: Path
    writer: Path
    snapshot: Path

    def manifest(self) -> dict[str, Any]:
        """Return dbt's manifest, parsed again only when a file of the project is newer.

        It is stored in the home. A home that does not exist is not created.

        Raises:
            RuntimeError: dbt cannot parse the project; has dbt's output.
        """
        if not self.writer.parent.exists():
            with tempfile.TemporaryDirectory() as folder:
                return _parse(Path(folder), self.writer)
        kept = self.target / "manifest.json"
        newest = max(p.stat().st_mtime for p in project_files())
        if kept.exists() and kept.stat().st_mtime >= newest:
            return _read(kept)
        return _parse(self.target, self.writer)

    @contextmanager
    def building(self) -> Iterator[dict[str, str]]:
        """Yield the environment variables of a run of dbt; what it made is stored afterwards.

        dbt works on a copy of the writer's file, so no writer waits for it. Builds of the reports
        take turns: none replaces reports of newer rows by its own.

        Raises:
            TimeoutError: other builds did not end.
        """
        schemas = {
            node["schema"]
            for node in self.manifest()["nodes"].values()
            if node["resource_type"] == "model"
        }
        # dbt's manifest names the database after the file.
        copy = self.target / "building" / self.writer.name
        # No compute function is handed the warehouse, and each is handed this object.
        warehouse = Warehouse(self.writer, self.snapshot)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with TurnLock(self.target / "building.lock").held(LOCK_SECONDS):
            try:
                # What a killed build left would be taken for a part of the copy.
                log_of(copy).unlink(missing_ok=True)
                with warehouse.locked():
                    copy_file(self.writer, copy)
                yield dbt_environment(copy, self.target)
                with warehouse.session() as connection:
                    take_relations(connection, copy, schemas)
            finally:
                for left in (copy, log_of(copy)):
                    left.unlink(missing_ok=True)


def project_hashes() -> list[str]:
    """Return the hash of each file of the reports."""
    return [hashlib.sha256(p.read_bytes()).hexdigest() for p in project_files()]


def project_files() -> list[Path]:
    """Return the files of the reports, sorted."""
    folders = [PROJECT / name for name in ("models", "macros", "data_tests")]
    files = [p for folder in folders for p in folder.rglob("*") if p.is_file()]
    return sorted([*files, *PROJECT.glob("*.yml")])


def dbt_executable() -> str:
    """Return the path of dbt in this environment, which PATH may lack."""
    beside = Path(sys.executable).with_name("dbt")
    return str(beside) if beside.exists() else "dbt"


def dbt_environment(writer: Path, target: Path) -> dict[str, str]:
    """Return the variables that dbt and `profiles.yml` read: warehouse file, folder of logs."""
    return {
        "MTEBLITE_WRITER": str(writer),
        "DBT_LOG_PATH": str(target / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def _parse(target: Path, writer: Path) -> dict[str, Any]:
    target.mkdir(parents=True, exist_ok=True)
    command = [dbt_executable(), "--quiet", "parse", "--project-dir", str(PROJECT)]
    done = subprocess.run(
        [*command, "--profiles-dir", str(PROJECT), "--target-path", str(target)],
        env={**os.environ, **dbt_environment(writer, target)},
        capture_output=True,
        text=True,
        check=False,
    )
    manifest = target / "manifest.json"
    if done.returncode or not manifest.exists():
        raise RuntimeError(f"dbt cannot parse {PROJECT.name}: {done.stdout}{done.stderr}")
    return _read(manifest)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
