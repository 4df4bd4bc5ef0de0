"""Dagster's side of the dbt reports: their models as assets, and a run of dbt as Dagster's events.

dagster-dbt imports dbt-core: 0.7 seconds of processor time at every load of the definitions.
"""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any

import dagster as dg
from dagster_dbt import (
    DagsterDbtTranslator,
    DagsterDbtTranslatorSettings,
    DbtCliResource,
    dbt_assets,
)

from mteblite_assets.graph.build import run_asset
from mteblite_assets.graph.keys import HOME_KEY
from mteblite_assets.reports import dbt_reports
from mteblite_resources.reports import PROJECT, Reports, dbt_executable
from mteblite_resources.resources import RESOURCE_KEYS


class Translator(DagsterDbtTranslator):
    """Names dbt's nodes as the graph does: a source is the asset that writes its table."""

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        """Flat names for models; a source names its asset in `meta`."""
        if dbt_resource_props["resource_type"] == "model":
            return dg.AssetKey(dbt_resource_props["name"])
        return super().get_asset_key(dbt_resource_props)

    def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str | None:
        """Put every dbt model into one group, after the stages."""
        return dbt_reports.stage


TRANSLATOR = Translator(
    DagsterDbtTranslatorSettings(enable_asset_checks=True, enable_duplicate_source_asset_keys=True)
)


def dbt_report_assets(reports: Reports) -> dg.AssetsDefinition:
    """Return the dbt models as one asset definition; they are built together."""

    @dbt_assets(
        manifest=reports.manifest(),
        name=dbt_reports.name,
        dagster_dbt_translator=TRANSLATOR,
        required_resource_keys=set(RESOURCE_KEYS),
        backfill_policy=None,
    )
    def models(context: dg.AssetExecutionContext) -> Iterator[Any]:
        yield from run_asset(context, dbt_reports, [HOME_KEY], force=True)

    return models


def run_dbt(reports: Reports) -> tuple[list[Any], str]:
    """Build and test all models; return Dagster's events, and why the run failed, else ""."""
    cli = DbtCliResource(project_dir=str(PROJECT), dbt_executable=dbt_executable())
    manifest = reports.manifest()
    # dagster-dbt prints every line of dbt, which its log in `target/runs` has, too.
    with reports.building() as variables, redirect_stdout(io.StringIO()):
        # dagster-dbt hands this process's environment to dbt.
        os.environ.update(variables)
        run = cli.cli(
            ["build"],
            manifest=manifest,
            dagster_dbt_translator=TRANSLATOR,
            target_path=reports.target / "runs",
            raise_on_error=False,
        )
        events = [
            event
            for line in run.stream_raw_events()
            for event in line.to_default_asset_events(manifest, TRANSLATOR)
        ]
    error = run.get_error()
    return events, " ".join(f"dbt failed: {error}".split())[:2000] if error else ""
