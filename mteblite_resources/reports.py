"""The dbt project of the reports: its files, its manifest, and the settings of runs on a home."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "dbt_reports"


@dataclass(frozen=True)
class Reports:
    """dbt on one home.

    Attributes:
        target: folder of the manifest, compiled SQL and run results.
        writer: the warehouse file that dbt writes.
        locked: holds the writer's lock while dbt has a connection.
    """

    target: Path
    writer: Path
    locked: Callable[[], AbstractContextManager[None]]

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

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a run of dbt on this home."""
        return dbt_environment(self.writer, self.target)


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
