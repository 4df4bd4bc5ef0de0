"""The quarantine table: scores that are refused, and scores that are taken with a note."""

from __future__ import annotations

from mteblite.reference_scores.revision_pick import is_range
from mteblite.reference_scores.suspicion import suspicious_cells
from mteblite.suites.suite_file import read_suite_file
from mteblite_resources.declared_tables import DeclaredConnection
from mteblite_resources.frozen_tasks import packaged_resolution, packaged_suites

RULES = "2"
"""Version of the rules; a quarantine of another version is written again."""
FITTED = "eng"
"""The packaged suite whose benchmark most public models have run as a whole."""

_OF_FILES = """
SELECT f.*, NULL AS split, NULL AS hf_subset, NULL AS entry_ix, NULL AS main_score,
    {} AS reason, '{}' AS decision
FROM reference_scores.ingested_files f {}
"""
_OF_CELLS = """
SELECT f.*, c.split, c.hf_subset, c.entry_ix, c.main_score, {} AS reason, '{}' AS decision
FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c USING (file_id)
WHERE {}
"""
_RULES = [
    _OF_FILES.format("f.refused", "refused", "WHERE f.refused <> ''"),
    _OF_FILES.format("f.repaired", "taken", "WHERE f.repaired <> ''"),
    _OF_FILES.format(
        "'not the file that the leaderboard keeps: ' || p.path || ' counts'",
        "refused",
        "JOIN reference_scores.ingested_files p "
        "ON p.picked AND p.model_name = f.model_name AND p.task_name = f.task_name "
        "WHERE NOT f.picked AND f.experiment = '' AND f.n_cells > 0",
    ),
    _OF_FILES.format(
        "'an experiment (' || f.experiment || '): the leaderboard shows none'",
        "refused",
        "WHERE f.experiment <> '' AND f.n_cells > 0",
    ),
    _OF_CELLS.format("c.refused", "refused", "c.refused <> ''"),
    _OF_CELLS.format("c.repaired", "taken", "c.repaired <> ''"),
    _OF_CELLS.format(
        "'main score is ' || c.main_score || ': not a fraction'",
        "refused",
        "abs(c.main_score) > 1",
    ),
    _OF_CELLS.format(
        "'the file has this subset before: the first one counts'", "refused", "c.entry_ix > 0"
    ),
]
"""Queries of refused and noted files and cells: (reason, decision, condition) in SQL."""
_INSERT = """
INSERT INTO reference_scores.quarantine BY NAME
SELECT file_id, path AS file, model_name, revision, mteb_version, task_name, split, hf_subset,
    entry_ix, main_score, reason, decision FROM
"""
_COUNTING = """
SELECT c.file_id, c.entry_ix, f.model_name, f.revision, f.mteb_version, f.task_name, f.path,
    c.split, c.hf_subset, c.main_score
FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c USING (file_id)
WHERE f.picked AND c.entry_ix = 0 AND abs(c.main_score) <= 1
"""


def rebuild_quarantine(connection: DeclaredConnection) -> None:
    """Write the quarantine of all official results again, in the caller's transaction."""
    connection.execute("DELETE FROM reference_scores.quarantine")
    connection.execute("DELETE FROM reference_scores.quarantine_rules")
    connection.execute("INSERT INTO reference_scores.quarantine_rules VALUES (?)", [RULES])
    for rule in _RULES:
        connection.execute(f"{_INSERT} ({rule})")
    _note_ranges(connection)
    cells = connection.arrow(_COUNTING).to_pandas(strings_to_categorical=True)
    if cells.empty:
        return
    connection.register("_rows", suspicious_cells(cells, fitted_benchmarks()))
    connection.execute(f"{_INSERT} _rows")


def refresh_quarantine(connection: DeclaredConnection) -> None:
    """Write the quarantine again where an earlier version of the rules made it."""
    made_by = connection.execute("SELECT rules FROM reference_scores.quarantine_rules").fetchall()
    if made_by != [(RULES,)]:
        rebuild_quarantine(connection)


def fitted_benchmarks() -> dict[str, list[tuple[str, str, str]]]:
    """Return the (task, split, subset) of benchmarks whose scores get a separate low-rank fit.

    They are frozen with the package, so that refusals do not depend on a home.
    """
    file = read_suite_file(packaged_suites() / f"{FITTED}.yaml")
    frozen = packaged_resolution(file)
    tasks = frozen.tasks.values() if frozen else ()
    cells = [(t.description.task, s, h) for t in tasks
             for s in t.description.splits for h in t.description.hf_subsets]  # fmt: skip
    return {str(file.benchmark): cells}


def _note_ranges(connection: DeclaredConnection) -> None:
    """Note files whose version of mteb is a range; `pick_revisions` ranks them as without one."""
    files = connection.execute(
        "SELECT * FROM reference_scores.ingested_files WHERE mteb_version LIKE '%-%'"
    ).df()
    files = files[files["mteb_version"].map(is_range).astype(bool)]
    reasons = [f"mteb_version {v} is a range: ranks as without one" for v in files["mteb_version"]]
    if not reasons:
        return
    rows = files.assign(
        split=None, hf_subset=None, entry_ix=None, main_score=None, reason=reasons,
        decision="taken",
    )  # fmt: skip
    connection.register("_rows", rows)
    connection.execute(f"{_INSERT} _rows")
