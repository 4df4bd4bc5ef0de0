"""The official results in the warehouse: only new and changed files are read.

`MTEBLITE_OFFICIAL_SCORES` names a checkout or mirror of the public results repository (a folder
of mteb result files), or a Parquet table of its cells. Both fill the same tables:
`reference_scores.ingested_files`, `ingested_cells`, `quarantine` and `quarantine_rules`. A run
changes few of their many rows, so they are written in separate transactions, not as a partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pandas as pd

from mteblite.reference_scores.public_models import full_scores_of
from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.suites.task_description import TaskDescription
from mteblite_resources import official_folder, official_table
from mteblite_resources.declared_tables import DeclaredConnection, DeclaredTables
from mteblite_resources.mteb_registry import registry_facts
from mteblite_resources.quarantine import rebuild_quarantine, refresh_quarantine
from mteblite_resources.result_folder import fingerprint, list_folder, results_root

TABLE = "official_scores.parquet"
NONE = "none"

_COUNTS = """
SELECT count(*) FILTER (result_format <> 'model_meta'),
    count(*) FILTER (refused <> ''), coalesce(sum(n_cells), 0), count(*) FILTER (picked)
FROM reference_scores.ingested_files
"""
_N_QUARANTINED = "SELECT count(*) FROM reference_scores.quarantine WHERE decision = 'refused'"
_NAMES = ("files", "refused files", "scores", "files that count", "refused scores")
"""What `_COUNTS` and `_N_QUARANTINED` count."""
_CONTENT = """
SELECT count(*) || ':' || coalesce(bit_xor(hash(columns)), 0) FROM (
    SELECT (f.model_name, f.revision, f.mteb_version, f.task_name, c.split, c.hf_subset,
        c.entry_ix, c.main_score, f.repaired, c.repaired) AS columns
    FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c USING (file_id)
    WHERE f.picked
    UNION ALL
    SELECT (model_name, revision, mteb_version, task_name, split, hf_subset, entry_ix,
        main_score, reason, decision)
    FROM reference_scores.quarantine
)
"""
_CELLS = """
WITH refusals AS (
    SELECT file_id, split, hf_subset,
        string_agg(DISTINCT reason, '; ' ORDER BY reason) FILTER (decision = 'refused') AS refused,
        string_agg(DISTINCT reason, '; ' ORDER BY reason) FILTER (decision = 'taken') AS noted
    FROM reference_scores.quarantine
    WHERE task_name IN (SELECT unnest($tasks)) AND split IS NOT NULL AND entry_ix = 0
    GROUP BY ALL
)
SELECT f.task_name AS task, f.model_name AS model, c.split, c.hf_subset, c.main_score, f.revision,
    f.mteb_version, f.registered,
    concat_ws('; ', nullif(f.repaired, ''), nullif(c.repaired, '')) AS repaired,
    coalesce(r.refused, '') AS refused, coalesce(r.noted, '') AS noted
FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c USING (file_id)
LEFT JOIN refusals r ON r.file_id = c.file_id AND r.split = c.split AND r.hf_subset = c.hf_subset
WHERE f.task_name IN (SELECT unnest($tasks)) AND f.picked AND c.entry_ix = 0
"""


@dataclass(frozen=True)
class OfficialResults:
    """The official results of one home.

    Attributes:
        location: folder or Parquet table; None = none is set.
        cache: folder of mteb's registry as facts.
    """

    location: Path | None
    cache: Path

    def state(self) -> str:
        """Return a hash of names, sizes and times of all files; reads directory entries only.

        Raises:
            ValueError: the location does not exist.
        """
        place = self._place()
        if place is None:
            return NONE
        if place.is_file():
            facts = place.stat()
            return f"table {facts.st_size} {facts.st_mtime_ns}"
        return f"folder {fingerprint(list_folder(place))}"

    def ingest(
        self, tables: DeclaredTables, progress: Callable[[str], None] = lambda _: None
    ) -> pd.DataFrame:
        """Bring the ingested tables up to date with the files; unchanged files are not opened.

        Returns:
            One row for `reference_scores.result_sources`, without the source.

        Raises:
            ValueError: the location does not exist, or the table lacks columns.
        """
        started = time.perf_counter()
        place = self._place()
        if place is None:
            kind, n_read = NONE, _forget(tables)
        elif place.is_file():
            kind, n_read = "table", official_table.ingest(tables, place, self.facts)
        else:
            kind, n_read = "folder", official_folder.ingest(tables, place, self.facts, progress)
        with tables.session() as connection:
            refresh_quarantine(connection)
            return _summary(connection, kind, n_read, time.perf_counter() - started)

    @cached_property
    def facts(self) -> RegistryFacts:
        """Facts of mteb's registry; empty where there are no official results."""
        return RegistryFacts() if self.location is None else registry_facts(self.cache)

    def _place(self) -> Path | None:
        """Return the table, or the folder of the models' folders."""
        if self.location is None:
            return None
        if not self.location.exists():
            raise ValueError(
                f"no official scores at {self.location}: let MTEBLITE_OFFICIAL_SCORES name a "
                "folder of mteb results or a Parquet table, or remove `official` from the suite"
            )
        if self.location.is_dir() and (self.location / TABLE).is_file():
            return self.location / TABLE
        return self.location if self.location.is_file() else results_root(self.location)


def stored_problem(connection: duckdb.DuckDBPyConnection) -> str:
    """Return how the stored rows differ from those that were read last, else ""."""
    noted = connection.execute(
        "SELECT n_files, n_refused_files, n_cells, n_picked, n_quarantined, content "
        "FROM reference_scores.result_sources"
    ).fetchall()
    found = connection.execute(_COUNTS).fetchall()[0]
    found += connection.execute(_N_QUARANTINED).fetchall()[0]
    found += connection.execute(_CONTENT).fetchall()[0]
    if not noted or found == noted[0]:
        return ""
    for name, there, made in zip(_NAMES, found, noted[0], strict=False):
        if there != made:
            return f"{there} of {made} {name} are there"
    return "their rows are other ones than were read"


def forget_results(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty the ingested tables, so that the next ingestion opens every file."""
    for table in ("ingested_files", "ingested_cells", "quarantine", "quarantine_rules"):
        connection.execute(f"DELETE FROM reference_scores.{table}")


def official_scores(
    tables: DeclaredTables, descriptions: Sequence[TaskDescription]
) -> pd.DataFrame:
    """Return the full scores of all public models; see `full_scores_of` for the columns."""
    tasks = sorted({d.task for d in descriptions})
    with tables.session() as connection:
        cells = connection.execute(_CELLS, {"tasks": tasks}).df()
    return full_scores_of(cells, needed_cells(descriptions))


def needed_cells(descriptions: Sequence[TaskDescription]) -> pd.DataFrame:
    """Return `task`, `split`, `hf_subset` of the cells whose mean is the full score of a task."""
    rows = [(d.task, s, h) for d in descriptions for s in d.splits for h in d.hf_subsets]
    return pd.DataFrame(rows, columns=["task", "split", "hf_subset"])


def _forget(tables: DeclaredTables) -> int:
    """Empty the tables when no source is set; return how many files they had."""
    with tables.session() as connection:
        held = connection.execute("SELECT count(*) FROM reference_scores.ingested_files")
        count = int(held.fetchall()[0][0])
        if count:
            connection.execute("DELETE FROM reference_scores.ingested_files")
            connection.execute("DELETE FROM reference_scores.ingested_cells")
            rebuild_quarantine(connection)
        return count


def _summary(
    connection: DeclaredConnection, kind: str, n_read: int, seconds: float
) -> pd.DataFrame:
    n_files, n_refused, n_cells, n_picked = connection.execute(_COUNTS).fetchall()[0]
    n_quarantined = connection.execute(_N_QUARANTINED).fetchall()[0][0]
    content = connection.execute(_CONTENT).fetchall()[0][0]
    row = {
        "kind": kind, "n_files": n_files, "n_read": n_read, "n_refused_files": n_refused,
        "n_cells": n_cells, "n_picked": n_picked, "n_quarantined": n_quarantined,
        "content": content, "seconds": seconds,
    }  # fmt: skip
    return pd.DataFrame([row])
