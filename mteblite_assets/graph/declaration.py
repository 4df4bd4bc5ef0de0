"""A stage asset as data: its grain, what it reads, what it writes, and the function that makes it.

`stage_asset` only records the declaration; `graph.build` turns declarations into Dagster assets
and `graph.plan` reads them to decide what is stale, so the UI and the command line agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from mteblite_assets.graph.keys import Grain

if TYPE_CHECKING:
    from mteblite_assets.graph.work import SettingsContext, Work


@dataclass(frozen=True)
class Produced:
    """What computing one partition gives.

    Attributes:
        tables: rows per table, without the partition's key columns (they are added).
        metadata: facts worth reading in the UI: counts, seconds, a short Markdown table.
        version: what the data version is computed from, when the rows are not the whole story
            (a pool's hash) or hold more than should count (a candidate in a roster).
    """

    tables: Mapping[str, pd.DataFrame]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None


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
        tables: tables it writes, the main one first.
        code_version: raise it when the same inputs give other rows.
        compute: makes one partition.
        settings: what of suite file, model or files enters the partition besides its deps.
        checks: contracts, shown as asset checks.
        on_request: never stale by itself; runs only when asked for.
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
    checks: tuple[Check, ...] = ()
    optional: Mapping[str, Callable[[SettingsContext], bool]] = field(default_factory=dict)
    on_request: bool = False
    unversioned: tuple[str, ...] = ("seconds", "n_encoded")
    kinds: tuple[str, ...] = ("duckdb", "python")

    @property
    def description(self) -> str:
        """The compute function's docstring: the catalogue entry in the UI."""
        return (self.compute.__doc__ or "").strip()

    def reads(self, dep: str, context: SettingsContext) -> bool:
        """Say whether a partition reads a dep."""
        return dep not in self.optional or self.optional[dep](context)


_DECLARED: dict[str, Declaration] = {}


def stage_asset(
    *,
    grain: Grain,
    tables: Sequence[str],
    code_version: str,
    deps: Sequence[str] = (),
    optional: Mapping[str, Callable[[SettingsContext], bool]] | None = None,
    settings: Callable[[SettingsContext], Any] | None = None,
    checks: Sequence[Check] = (),
    on_request: bool = False,
    kinds: Sequence[str] = ("duckdb", "python"),
) -> Callable[[Callable[[Work], Produced]], Declaration]:
    """Declare an asset; the function's name is its key and its module's folder its stage.

    Raises:
        ValueError: a dep that is not declared above it: the graph reads top-down.
    """

    def declare(compute: Callable[[Work], Produced]) -> Declaration:
        missing = [d for d in (*deps, *(optional or ())) if d not in _DECLARED]
        if missing:
            raise ValueError(f"{compute.__name__} depends on {missing}, not declared above it")
        declaration = Declaration(
            name=compute.__name__,
            stage=compute.__module__.split(".")[1],
            grain=grain,
            deps=(*deps, *(optional or ())),
            optional=dict(optional or {}),
            tables=tuple(tables),
            code_version=code_version,
            compute=compute,
            settings=settings,
            checks=tuple(checks),
            on_request=on_request,
            kinds=tuple(kinds),
        )
        _DECLARED[declaration.name] = declaration
        return declaration

    return declare


def declarations() -> dict[str, Declaration]:
    """Return all assets in flow order (the stages must have been imported in that order)."""
    return dict(_DECLARED)
