"""The quarantine table: every score that is refused, and every one that is taken with a note."""

from __future__ import annotations

from mteblite.reference_scores.revision_pick import is_range
from mteblite.reference_scores.suspicion import suspicious_cells
from mteblite.suites.suite_file import read_suite_file
from mteblite_resources.declared_tables import DeclaredConnection
from mteblite_resources.frozen_tasks import packaged_resolution, packaged_suites

RULES = "2"
"""Changes with what is refused or noted, so that a quarantine of other rules is made again."""
FITTED = "eng"
"""The packaged suite whose benchmark nearly all public models have run together."""

_RULES = {
    "files that hold no results": """
        SELECT f.*, NULL AS split, NULL AS hf_subset, NULL AS entry_ix, NULL AS main_score,
            f.refused AS reason, 'refused' AS decision
        FROM reference_scores.ingested_files f WHERE f.refused <> ''
    """,
    "names and tasks that were repaired": """
        SELECT f.*, NULL AS split, NULL AS hf_subset, NULL AS entry_ix, NULL AS main_score,
            f.repaired AS reason, 'taken' AS decision
        FROM reference_scores.ingested_files f WHERE f.repaired <> ''
    """,
    "files of a (model, task) that has another": """
        SELECT f.*, NULL AS split, NULL AS hf_subset, NULL AS entry_ix, NULL AS main_score,
            'not the file that the leaderboard keeps: ' || p.path || ' counts' AS reason,
            'refused' AS decision
        FROM reference_scores.ingested_files f JOIN reference_scores.ingested_files p
            ON p.picked AND p.model_name = f.model_name AND p.task_name = f.task_name
        WHERE NOT f.picked AND f.experiment = '' AND f.n_cells > 0
    """,
    "ablations": """
        SELECT f.*, NULL AS split, NULL AS hf_subset, NULL AS entry_ix, NULL AS main_score,
            'an experiment (' || f.experiment || '): the leaderboard shows none' AS reason,
            'refused' AS decision
        FROM reference_scores.ingested_files f WHERE f.experiment <> '' AND f.n_cells > 0
    """,
    "cells without a number": """
        SELECT f.*, c.split, c.hf_subset, c.entry_ix, c.main_score, c.refused AS reason,
            'refused' AS decision
        FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c
            USING (file_id) WHERE c.refused <> ''
    """,
    "cells whose metric was renamed": """
        SELECT f.*, c.split, c.hf_subset, c.entry_ix, c.main_score, c.repaired AS reason,
            'taken' AS decision
        FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c
            USING (file_id) WHERE c.repaired <> ''
    """,
    "scores that are no fractions": """
        SELECT f.*, c.split, c.hf_subset, c.entry_ix, c.main_score,
            'main score is ' || c.main_score || ': not a fraction' AS reason,
            'refused' AS decision
        FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c
            USING (file_id) WHERE abs(c.main_score) > 1
    """,
    "subsets that a file repeats": """
        SELECT f.*, c.split, c.hf_subset, c.entry_ix, c.main_score,
            'the file has this subset before: the first one counts' AS reason,
            'refused' AS decision
        FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c
            USING (file_id) WHERE c.entry_ix > 0
    """,
}
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
    for rule in _RULES.values():
        connection.execute(f"{_INSERT} ({rule})")
    _note_ranges(connection)
    counting = connection.arrow(_COUNTING)
    cells = counting.to_pandas(strings_to_categorical=True)
    if cells.empty:
        return
    connection.register("_rows", suspicious_cells(cells, fitted_benchmarks()))
    connection.execute(f"{_INSERT} _rows")
    connection.unregister("_rows")


def refresh_quarantine(connection: DeclaredConnection) -> None:
    """Write the quarantine again where an earlier version of the rules made it."""
    made_by = connection.execute("SELECT rules FROM reference_scores.quarantine_rules").fetchall()
    if made_by != [(RULES,)]:
        rebuild_quarantine(connection)


def fitted_benchmarks() -> dict[str, list[tuple[str, str, str]]]:
    """Return the (task, split, subset) of benchmarks whose scores get a low-rank fit of their own.

    They are those frozen with the package, so that what is refused does not depend on a home.
    """
    file = read_suite_file(packaged_suites() / f"{FITTED}.yaml")
    frozen = packaged_resolution(file)
    tasks = frozen.tasks.values() if frozen else ()
    cells = [(t.description.task, s, h) for t in tasks
             for s in t.description.splits for h in t.description.hf_subsets]  # fmt: skip
    return {str(file.benchmark): cells}


def _note_ranges(connection: DeclaredConnection) -> None:
    """Note files whose version of mteb is a range: the pick ranks them as having none."""
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
    connection.unregister("_rows")
