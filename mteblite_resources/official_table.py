"""Official results from a Parquet table: one row per (result file, split, hf_subset)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd

from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.reference_scores.result_format import RENAMED_METRICS
from mteblite_resources.declared_tables import DeclaredConnection, DeclaredTables
from mteblite_resources.quarantine import rebuild_quarantine

REQUIRED = (
    "model_name", "revision", "mteb_version", "task_name", "split", "hf_subset", "main_score",
    "experiment", "entry_ix", "lb_pick", "file_id", "registered", "score_alt",
    "dataset_revision", "result_format",
)  # fmt: skip

_FILES = """
INSERT INTO reference_scores.ingested_files BY NAME
SELECT t.file_id, $name || '#' || t.file_id AS path, $size AS size, $mtime AS mtime_ns,
    $read_with AS read_with,
    coalesce(any_value(m.present), any_value(t.model_name)) AS model_name,
    coalesce(any_value(t.revision), 'no_revision_available') AS revision,
    coalesce(any_value(t.mteb_version), '') AS mteb_version,
    coalesce(any_value(k.present), any_value(t.task_name)) AS task_name,
    coalesce(any_value(t.experiment), '') AS experiment,
    coalesce(any_value(t.dataset_revision), '') AS dataset_revision,
    any_value(t.result_format) AS result_format, any_value(t.registered) AS registered,
    bool_or(t.lb_pick) AND any_value(t.experiment) IS NULL AS picked,
    count(*) AS n_cells, '' AS refused,
    concat_ws('; ',
        any_value(t.model_name || ' is ' || m.present || ' in mteb''s registry now'),
        any_value('task ' || t.task_name || ' is ' || k.present || ' now')) AS repaired
FROM read_parquet($path) t
LEFT JOIN _models m ON m.former = t.model_name LEFT JOIN _tasks k ON k.former = t.task_name
GROUP BY t.file_id
"""
_CELLS = """
INSERT INTO reference_scores.ingested_cells BY NAME
SELECT t.file_id, t.split, t.hf_subset, t.entry_ix,
    CASE WHEN isfinite(t.main_score) THEN t.main_score
         WHEN r.main IS NOT NULL AND isfinite(t.score_alt) THEN t.score_alt END AS main_score,
    CASE WHEN isfinite(t.main_score) OR r.main IS NULL OR NOT isfinite(t.score_alt) THEN ''
         ELSE 'main score ' || r.main || ' taken from its former name' END AS repaired,
    CASE WHEN isfinite(t.main_score) OR (r.main IS NOT NULL AND isfinite(t.score_alt)) THEN ''
         WHEN t.main_score IS NULL THEN 'no main score'
         ELSE 'main_score is ' || t.main_score || ': not a number' END AS refused
FROM read_parquet($path) t
LEFT JOIN _renamed r ON r.task = t.task_name AND t.score_alt IS NOT NULL
"""


def ingest(tables: DeclaredTables, path: Path, facts: RegistryFacts) -> int:
    """Read the table into the ingested tables, unless they hold its present state.

    Args:
        tables: the ingested tables.
        path: the Parquet table, with the columns of `REQUIRED`; `lb_pick` marks the file of a
            (model, task) that the leaderboard shows.
        facts: mteb's registry.

    Returns:
        Number of result files in the table; 0 where it is not read.

    Raises:
        ValueError: it is not a Parquet table, or lacks columns; names them.
    """
    stat = path.stat()
    state = [stat.st_size, stat.st_mtime_ns, facts.mteb_version]
    with tables.session() as connection:
        held = connection.execute(
            "SELECT count(*), count(*) FILTER (size = ? AND mtime_ns = ? AND read_with = ?) "
            "FROM reference_scores.ingested_files", state,
        ).fetchall()[0]  # fmt: skip
        if held[0] and held[0] == held[1]:
            return 0
        _check(connection, path)
        connection.execute("DELETE FROM reference_scores.ingested_files")
        connection.execute("DELETE FROM reference_scores.ingested_cells")
        _register(connection, facts)
        values = dict(zip(("size", "mtime", "read_with"), state, strict=True))
        connection.execute(_FILES, {"path": str(path), "name": path.name, **values})
        connection.execute(_CELLS, {"path": str(path)})
        rebuild_quarantine(connection)
        count = connection.execute("SELECT count(*) FROM reference_scores.ingested_files")
        return int(count.fetchall()[0][0])


def _check(connection: DeclaredConnection, path: Path) -> None:
    try:
        found = connection.execute("SELECT name FROM parquet_schema(?)", [str(path)]).fetchall()
    except duckdb.Error as error:
        raise ValueError(f"{path} cannot be read as a Parquet table: {error}") from error
    missing = sorted(set(REQUIRED) - {name for (name,) in found})
    if missing:
        raise ValueError(
            f"{path} lacks the column(s) {', '.join(missing)} of a table of official scores; "
            f"it needs {', '.join(REQUIRED)}"
        )


def _register(connection: DeclaredConnection, facts: RegistryFacts) -> None:
    renamed = [(task, main) for task, main in facts.task_metrics.items() if main in RENAMED_METRICS]
    tables = {
        "_models": (["former", "present"], list(facts.model_renames.items())),
        "_tasks": (["former", "present"], list(facts.task_renames.items())),
        "_renamed": (["task", "main"], renamed),
    }
    for name, (columns, rows) in tables.items():
        connection.register(name, pd.DataFrame(rows, columns=columns, dtype="string"))
