"""dbt reports in the same graph: the marts over the stage tables, with lineage to their assets."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from mteblite_assets.graph.automation import reports_condition
from mteblite_assets.graph.content import text_version
from mteblite_assets.light_dagster_dbt import (
    DagsterDbtTranslator,
    DagsterDbtTranslatorSettings,
    DbtCliResource,
    DbtProject,
    dbt_assets,
)
from mteblite_resources.home import Home
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of
from mteblite_resources.warehouse import read_ledger, write_ledger
from mteblite_resources.workbench import Workbench

PROJECT = Path(__file__).resolve().parents[1] / "dbt_reports"
GROUP = "dbt_reports"
LEDGER_NAME, LEDGER_KEY = "dbt_reports", "all"


class Translator(DagsterDbtTranslator):
    """Names dbt's nodes as the graph does: a source is the asset that writes its table."""

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        """Flat names for models; a source names its asset in `meta`."""
        if dbt_resource_props["resource_type"] == "model":
            return dg.AssetKey(dbt_resource_props["name"])
        return super().get_asset_key(dbt_resource_props)

    def get_automation_condition(
        self, dbt_resource_props: Mapping[str, Any]
    ) -> dg.AutomationCondition | None:
        """Rebuild the reports when a stage table that they read has new content."""
        return reports_condition() if dbt_resource_props["resource_type"] == "model" else None

    def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str | None:
        """Put every dbt model into one group, after the stages."""
        return GROUP


class QuietDbt(DbtCliResource):
    """dbt without the adapter that only row counts would need, and that wants dbt imported."""

    def _initialize_dbt_core_adapter(self, args: Any) -> Any:
        return None


def dbt_reports_assets(home: Home) -> dg.AssetsDefinition:
    """Return the dbt models as one asset definition; they are built together.

    dbt opens the writer's file, so it runs under the warehouse's lock, and the snapshot is
    published after it.
    """
    manifest = ensure_manifest(home)
    project = DbtProject(PROJECT, target_path=home.dbt, profiles_dir=PROJECT)

    @dbt_assets(
        manifest=manifest,
        name="dbt_reports",
        project=project,
        dagster_dbt_translator=Translator(
            DagsterDbtTranslatorSettings(
                enable_asset_checks=True, enable_duplicate_source_asset_keys=True
            )
        ),
        required_resource_keys=set(RESOURCE_KEYS),
        backfill_policy=None,
    )
    def dbt_reports(context: dg.AssetExecutionContext) -> Iterator[Any]:
        bench = workbench_of(context.resources)
        version = reports_version(bench)
        os.environ.update(dbt_environment(bench.home))
        cli = QuietDbt(project_dir=str(PROJECT), dbt_executable=dbt_executable())
        failed = True
        try:
            with bench.warehouse.locked():
                yield from cli.cli(
                    ["build", "--quiet"], context=context, target_path=bench.home.dbt / "runs"
                ).stream()
            failed = False
        finally:
            record_reports(bench, version, failed=failed, run_id=context.run_id)
            bench.warehouse.publish()

    return dbt_reports


def ensure_manifest(home: Home) -> Path:
    """Return dbt's manifest, parsed again only when a file of the project is newer."""
    manifest = home.dbt / "manifest.json"
    newest = max(p.stat().st_mtime for p in project_files())
    if not manifest.exists() or manifest.stat().st_mtime < newest:
        home.dbt.mkdir(parents=True, exist_ok=True)
        command = [dbt_executable(), "--quiet", "parse", "--project-dir", str(PROJECT)]
        done = subprocess.run(
            [*command, "--profiles-dir", str(PROJECT), "--target-path", str(home.dbt)],
            env={**os.environ, **dbt_environment(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not manifest.exists():
            raise RuntimeError(f"dbt cannot parse {PROJECT.name}: {done.stdout}{done.stderr}")
    return manifest


def reports_version(bench: Workbench) -> str:
    """Return a hash of everything that the marts are made of: data versions, models, dbt files."""
    with bench.warehouse.session() as connection:  # the tables exist even before any stage ran
        ledger = read_ledger(connection)
    made = {f"{a} {k}": e["data_version"] for (a, k), e in ledger.items() if a != LEDGER_NAME}
    suites = bench.catalog().suites.values()
    models = sorted((s.name, m.name, m.family, m.role) for s in suites for m in s.models)
    files = [hashlib.sha256(p.read_bytes()).hexdigest() for p in project_files()]
    return text_version(json.dumps([made, models, files], sort_keys=True))


def record_reports(bench: Workbench, version: str, *, failed: bool, run_id: str) -> None:
    """Write what the marts were made of to the ledger, so that nobody builds them again."""
    entry: dict[str, Any] = {
        "status": "failed" if failed else "ok",
        "reason": "dbt failed; see the run's log" if failed else None,
        "code_version": "1",
        "settings_hash": version,
        "data_version": version,
        "inputs": {},
        "run_id": run_id,
    }
    with bench.warehouse.session() as connection:
        write_ledger(connection, LEDGER_NAME, LEDGER_KEY, entry)


def project_files() -> list[Path]:
    """Return the files that the reports are made from."""
    folders = [PROJECT / name for name in ("models", "macros", "data_tests")]
    files = [p for folder in folders for p in folder.rglob("*") if p.is_file()]
    return sorted([*files, *PROJECT.glob("*.yml")])


def dbt_executable() -> str:
    """Return the dbt of this environment, which need not be on PATH."""
    beside = Path(sys.executable).with_name("dbt")
    return str(beside) if beside.exists() else "dbt"


def dbt_environment(home: Home) -> dict[str, str]:
    """Return what `profiles.yml` reads: the file to build in and where logs go."""
    return {
        "MTEBLITE_WRITER": str(home.writer),
        "DBT_LOG_PATH": str(home.dbt / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
