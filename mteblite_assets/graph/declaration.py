"""A stage asset as data: its grain, what it reads, what it writes, and the function that makes it.

`flow.ASSETS` lists all of them. `graph.build` turns declarations into Dagster assets and
`graph.plan` reads them to decide what is stale, so the UI and the command line agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from mteblite_assets.graph.keys import Grain

if TYPE_CHECKING:
    from mteblite_assets.graph.work import SettingsContext, Work


NUMBERS = frozenset({
    "main_score", "pool_score", "outcome", "slope", "intercept", "weight", "pool_weight",
    "predicted", "mean", "macro_mean",
})  # fmt: skip
"""Columns that must hold a finite number in every row, unless `nullable` names them."""


@dataclass(frozen=True)
class Produced:
    """What computing one partition gives.

    Attributes:
        tables: rows per table, without the partition's key columns (they are added).
        metadata: facts worth reading in the UI: counts, seconds, a short Markdown table.
        version: what the data version is computed from, when the rows are not the whole story
            (a pool's hash) or hold more than should count (a candidate in a roster).
        events: what another tool has to tell Dagster of assets of its own (dbt: its models and
            tests); logged in the place of the asset's materialization.
        failed: why the partition counts as failed although it ran to its end, else "".
        nothing: why there is nothing to show although nothing failed, else "". The UI does not
            show such a partition as materialized.
    """

    tables: Mapping[str, pd.DataFrame]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    events: Sequence[Any] = ()
    failed: str = ""
    nothing: str = ""


@dataclass(frozen=True)
class Check:
    """A contract of an asset's tables: a query whose rows are the violations."""

    name: str
    description: str
    violations: str


@dataclass(frozen=True)
class Declaration:
    """One asset of the graph.

    Attributes:
        name: asset key.
        stage: folder, Dagster group and schema.
        grain: what a partition is.
        deps: names of the assets it reads; nothing else can be read.
        optional: deps that not every partition reads, with what says whether one does; to the
            others such a dep has no rows, and what changes in it changes nothing.
        tables: tables whose rows it hands over, the main one first; the driver writes them.
        self_written: tables that it writes itself, in transactions of its own, because a run
            changes few of their many rows. Who names it in `deps` may query them in SQL.
        keeps_rows: whether a run is handed the rows that its partition has already, and returns
            them with its own (a record of what was made).
        hands_rows: whether a run is handed the rows of its deps; not where another tool queries
            the tables.
        code_version: raise it when the same inputs give other rows.
        compute: makes one partition.
        settings: what of suite file, model or files enters the partition besides its deps.
        checks: contracts, shown as asset checks.
        many_rows: whether its rows are too many to be counted for a plan; a run that reads them
            counts them.
        on_request: never stale by itself; runs only when asked for.
        nullable: columns of NUMBERS that may hold NaN here, because a metric can be undefined.
        unversioned: columns that do not count as content (times).
        kinds: technologies shown in the UI.
    """

    name: str
    stage: str
    grain: Grain
    deps: tuple[str, ...]
    tables: tuple[str, ...]
    code_version: str
    compute: Callable[[Work], Produced]
    settings: Callable[[SettingsContext], Any] | None = None
    checks: Sequence[Check] = ()
    optional: Mapping[str, Callable[[SettingsContext], bool]] = field(default_factory=dict)
    self_written: Sequence[str] = ()
    keeps_rows: bool = False
    hands_rows: bool = True
    many_rows: bool = False
    on_request: bool = False
    nullable: Sequence[str] = ()
    unversioned: Sequence[str] = ("seconds", "n_encoded")
    kinds: Sequence[str] = ("duckdb", "python")

    @property
    def description(self) -> str:
        """The compute function's docstring: the catalogue entry in the UI."""
        return (self.compute.__doc__ or "").strip()

    def reads(self, dep: str, context: SettingsContext) -> bool:
        """Say whether a partition reads a dep."""
        return dep not in self.optional or self.optional[dep](context)


def stage_asset(
    *,
    grain: Grain,
    tables: Sequence[str],
    code_version: str,
    deps: Sequence[str] = (),
    optional: Mapping[str, Callable[[SettingsContext], bool]] | None = None,
    **options: Any,
) -> Callable[[Callable[[Work], Produced]], Declaration]:
    """Make a declaration; the function's name is its key and its module's folder its stage.

    `options` are further attributes of `Declaration`.
    """

    def declare(compute: Callable[[Work], Produced]) -> Declaration:
        return Declaration(
            name=compute.__name__,
            stage=compute.__module__.split(".")[1],
            grain=grain,
            deps=(*deps, *(optional or ())),
            optional=dict(optional or {}),
            tables=tuple(tables),
            code_version=code_version,
            compute=compute,
            **options,
        )

    return declare


def in_flow_order(*assets: Declaration) -> tuple[Declaration, ...]:
    """Return declarations as they are, checked.

    Raises:
        ValueError: a dep is not declared above its asset, or two assets have one name or table.
    """
    names: set[str] = set()
    writers: dict[str, str] = {}
    for asset in assets:
        missing = [d for d in asset.deps if d not in names]
        if missing:
            raise ValueError(f"asset {asset.name} depends on {missing}, not declared above it")
        if asset.name in names:
            raise ValueError(f"two assets are named {asset.name}: rename one")
        names.add(asset.name)
        for table in (*asset.tables, *asset.self_written):
            if table in writers:
                raise ValueError(
                    f"table {table} is written by {writers[table]} and by {asset.name}: "
                    "a table has one asset that writes it"
                )
            writers[table] = asset.name
    return assets
