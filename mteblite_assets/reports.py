"""dbt reports in the same graph: the marts over the stage tables, with lineage to their assets."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from mteblite_assets.light_dagster_dbt import (
    DagsterDbtTranslator,
    DagsterDbtTranslatorSettings,
    DbtCliResource,
    DbtProject,
    dbt_assets,
)
from mteblite_resources.home import Home
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of

PROJECT = Path(__file__).resolve().parents[1] / "dbt_reports"
GROUP = "dbt_reports"


class Translator(DagsterDbtTranslator):
    """Names dbt's nodes as the graph does: a source is the asset that writes its table."""

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        """Flat names for models; a source names its asset in `meta`."""
        if dbt_resource_props["resource_type"] == "model":
            return dg.AssetKey(dbt_resource_props["name"])
        return super().get_asset_key(dbt_resource_props)

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
        with bench.warehouse.session():
            pass  # the tables exist even before the first stage ran
        os.environ.update(dbt_environment(bench.home))
        cli = QuietDbt(project_dir=project, dbt_executable=dbt_executable())
        with bench.warehouse.locked():
            yield from cli.cli(
                ["build", "--quiet"], context=context, target_path=bench.home.dbt / "runs"
            ).stream()
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
