"""What a run tells Dagster: materializations with provenance, and the results of checks."""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
from dagster import AssetCheckEvaluation

from mteblite_assets.graph.declaration import Check, Declaration
from mteblite_assets.graph.driver import Done
from mteblite_assets.graph.keys import Grain
from mteblite_resources.warehouse import Warehouse

LogEvent = Callable[[Any], None]
NOT_READ = "not read"
"""Data version of an optional dep that a partition does without."""


class RunEvents:
    """Tells Dagster what a run made of one asset."""

    def __init__(
        self, instance: dg.DagsterInstance, log_event: LogEvent, declaration: Declaration
    ) -> None:
        """Take the instance, what logs an event, and the asset."""
        self._instance = instance
        self._log_event = log_event
        self._declaration = declaration
        # Asked once, because asking costs as much as an event.
        self._newest: dict[str, str] = {}

    def log(self, done: Done) -> None:
        """Log a partition that is there, with the provenance that Dagster's staleness needs.

        Of the reports also what of them failed: dbt's models and tests are assets and checks.
        """
        if self._declaration.grain is Grain.HOME:
            for event in done.produced.events if done.produced else ():
                self._log_event(event)
        elif done.status in ("ok", "fresh"):
            # What shows nothing is no materialization: the UI would paint its partition green.
            nothing = done.produced is not None and done.produced.nothing
            event = dg.AssetObservation if nothing else dg.AssetMaterialization
            self._log_event(
                event(
                    self._declaration.name,
                    partition=done.key,
                    metadata=metadata_of(done),
                    tags=self._tags(done),
                )
            )

    def _tags(self, done: Done) -> dict[str, str]:
        tags = {
            "dagster/data_version": done.data_version or done.status,
            "dagster/code_version": self._declaration.code_version,
        }
        read = done.need.inputs if done.need else {}
        # A dep that this partition does not read would otherwise look like a new one to Dagster.
        versions = {**dict.fromkeys(self._declaration.optional, NOT_READ), **read}
        for dep, version in versions.items():
            tags[f"dagster/input_data_version/{dep}"] = version
            if dep not in self._newest:
                self._newest[dep] = _newest_event(self._instance, dep)
            if self._newest[dep]:
                tags[f"dagster/input_event_pointer/{dep}"] = self._newest[dep]
        return tags


def metadata_of(done: Done) -> dict[str, Any]:
    """Return a finished partition's facts for the UI; Markdown tables stay tables."""
    if done.status != "ok" or done.produced is None:
        return {"status": done.status}
    facts: dict[str, Any] = {"rows": done.n_rows, "seconds": round(done.seconds, 3)}
    if done.produced.nothing:
        facts["nothing"] = done.produced.nothing
    for name, value in done.produced.metadata.items():
        table = isinstance(value, str) and value.lstrip().startswith("|")
        facts[name] = dg.MetadataValue.md(value) if table else value
    return facts


def evaluations_in(done: Done) -> list[AssetCheckEvaluation]:
    """Return the checks that another tool evaluated while it made a partition (dbt's tests)."""
    events = done.produced.events if done.produced else ()
    return [event for event in events if isinstance(event, AssetCheckEvaluation)]


def evaluate(declaration: Declaration, warehouse: Warehouse) -> Iterator[AssetCheckEvaluation]:
    """Yield the result of each of an asset's checks on the published tables."""
    for check in declaration.checks:
        yield _evaluation(check, declaration, warehouse)


def _evaluation(
    check: Check, declaration: Declaration, warehouse: Warehouse
) -> AssetCheckEvaluation:
    violations = warehouse.query(check.violations)
    sample = violations.head(5).to_markdown(index=False) if len(violations) else "none"
    return AssetCheckEvaluation(
        asset_key=dg.AssetKey(declaration.name),
        check_name=check.name,
        passed=violations.empty,
        metadata={
            "violations": dg.MetadataValue.int(len(violations)),
            "first": dg.MetadataValue.md(sample),
        },
        description=check.description,
    )


def _newest_event(instance: dg.DagsterInstance, asset: str) -> str:
    records = instance.get_asset_records([dg.AssetKey(asset)])
    storage_id = records[0].asset_entry.last_materialization_storage_id if records else None
    return str(storage_id) if storage_id is not None else ""
