"""What a compute function is handed: its partition, its rows, and the outside world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from mteblite.suites.catalog import Catalog, Suite, TaskEntry
from mteblite.suites.suite_model import SuiteModel

if TYPE_CHECKING:
    from mteblite_resources.declared_tables import DeclaredTables
    from mteblite_resources.workbench import Ports


@dataclass(frozen=True)
class SettingsContext:
    """A partition before it runs: what its settings are read from."""

    key: Mapping[str, str]
    catalog: Catalog
    ports: Ports

    @property
    def suite(self) -> Suite:
        """The suite of the partition."""
        return self.catalog.suite(self.key["suite"])

    @property
    def entry(self) -> TaskEntry:
        """The suite task of the partition; for a shared pool, the first suite's by name."""
        if "pool_task" in self.key:
            return self.catalog.entries_of_pool(self.key["pool_task"])[0]
        return self.suite.task(self.key["task"])

    @property
    def max_tokens(self) -> int | None:
        """Token cap of the partition's suite; suites that share a pool share it."""
        suite = self.key.get("suite") or self.entry.suite
        return self.catalog.suite(suite).file.max_tokens

    @property
    def model(self) -> SuiteModel:
        """The model of the partition."""
        if "pool_task" in self.key:
            return self.catalog.pool_models(self.key["pool_task"])[self.key["model"]]
        return self.suite.model(self.key["model"])


@dataclass(frozen=True)
class Work(SettingsContext):
    """A partition being computed.

    Attributes:
        inputs: rows of every table of every declared dep, for the upstream partitions of this
            one; nothing else can be read, so that reads and lineage cannot disagree.
        tables: the `self_written` tables of the asset and of its deps, in SQL.
        progress: call with a short text while working long.
    """

    inputs: Mapping[str, pd.DataFrame]
    tables: DeclaredTables
    progress: Callable[[str], None]

    def rows(self, table: str) -> pd.DataFrame:
        """Return the rows of an upstream table.

        Raises:
            UndeclaredTableError: no declared dep writes that table.
        """
        if table not in self.inputs:
            from mteblite_resources.declared_tables import UndeclaredTableError

            raise UndeclaredTableError(
                f"asset {self.tables.asset} reads {table}, which no dep of it writes; it may read "
                f"{sorted(self.inputs)}: name the asset that writes it in `deps`"
            )
        return self.inputs[table]
