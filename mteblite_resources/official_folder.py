"""Official results from a folder of result files: only new and changed ones are opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.reference_scores.revision_pick import pick_revisions
from mteblite_resources.declared_tables import DeclaredConnection, DeclaredTables
from mteblite_resources.quarantine import rebuild_quarantine
from mteblite_resources.result_folder import META, Entry, Owner, list_folder, owner_of, place_of
from mteblite_resources.result_reading import ReadFiles, read_files

_CELL_SCHEMA = pa.schema(
    [
        ("number", pa.int32()), ("split", pa.string()), ("hf_subset", pa.string()),
        ("entry_ix", pa.int16()), ("main_score", pa.float64()), ("repaired", pa.string()),
        ("refused", pa.string()),
    ]
)  # fmt: skip


@dataclass
class Batch:
    """Rows of new and changed files, ready to be stored."""

    files: list[dict[str, Any]] = field(default_factory=list)
    cells: list[pa.Table] = field(default_factory=list)

    def add(self, read: ReadFiles) -> None:
        """Add the files and cells of a part."""
        for number, reason in read.refused.items():
            self.files[number]["refused"] = reason
        for number, result in read.files.items():
            facts = self.files[number]
            facts |= {
                "task_name": result.task_name, "mteb_version": result.mteb_version,
                "dataset_revision": result.dataset_revision,
                "result_format": result.result_format, "n_cells": result.n_cells,
                "repaired": "; ".join(filter(None, (facts["repaired"], result.repaired))),
            }  # fmt: skip
        self.cells += [table.cast(_CELL_SCHEMA) for table in read.cells]


def ingest(
    tables: DeclaredTables, root: Path, facts: RegistryFacts, progress: Callable[[str], None]
) -> int:
    """Bring the ingested tables up to date with a results folder.

    Args:
        tables: the ingested tables.
        root: the folder that holds the models' folders.
        facts: mteb's registry.
        progress: called with a short text before reading.

    Returns:
        Number of new, changed and deleted files; 0 = only directory entries were read.
    """
    entries = list_folder(root)
    with tables.session() as connection:
        known = _known(connection, facts)
    fresh, stale = _difference(entries, known)
    if not fresh and not stale:
        return 0
    batch = _read(root, fresh, facts, progress)
    with tables.session() as connection:
        _replace(connection, batch, stale)
        _pick(connection, facts)
        rebuild_quarantine(connection)
    return len(fresh) + len(stale)


def _known(connection: DeclaredConnection, facts: RegistryFacts) -> dict[str, tuple[int, int]]:
    """Return (size, mtime) of each path; (-1, -1) where another version of mteb read it."""
    rows = connection.execute(
        "SELECT path, size, mtime_ns, read_with FROM reference_scores.ingested_files"
    ).fetchall()
    now = facts.mteb_version
    return {path: (size, mtime) if read == now else (-1, -1) for path, size, mtime, read in rows}


def _difference(
    entries: Sequence[Entry], known: dict[str, tuple[int, int]]
) -> tuple[list[Entry], list[str]]:
    """Return the entries to read and the paths whose rows are deleted."""
    present = {e.path for e in entries}
    gone = [path for path in known if path not in present]
    changed = {e.path for e in entries if known.get(e.path) != (e.size, e.mtime_ns)}
    # model_meta.json names the model of all files of its folder: they are read again with it.
    renamed = {_folder(path) for path in (*changed, *gone) if path.endswith(f"/{META}")}
    fresh = [e for e in entries if e.path in changed or _owned_by(e.path) & renamed]
    return fresh, [*gone, *(e.path for e in fresh if e.path in known)]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _owned_by(path: str) -> set[str]:
    """Return the folders whose `model_meta.json` may name the model: its own, the revision's."""
    return {_folder(path), "/".join(path.split("/")[:2])}


def _read(
    root: Path, entries: Sequence[Entry], facts: RegistryFacts, progress: Callable[[str], None]
) -> Batch:
    batch = Batch()
    owners: dict[tuple[str, str, str], Owner] = {}
    wanted: list[tuple[int, str]] = []
    for number, entry in enumerate(entries):
        place = place_of(entry.path)
        row: dict[str, Any] = {
            "number": number, "path": entry.path, "size": entry.size, "mtime_ns": entry.mtime_ns,
            "read_with": facts.mteb_version, "experiment": place.experiment, "n_cells": 0,
            "model_name": "", "revision": "", "mteb_version": "", "task_name": "",
            "dataset_revision": "", "result_format": "", "registered": False, "repaired": "",
            "refused": "",
        }  # fmt: skip
        batch.files.append(row)
        if place.name == META and place.revision:
            row["result_format"] = "model_meta"
        elif not place.is_result:
            row["refused"] = "no result file: stray in the folder"
        else:
            key = (place.model_folder, place.revision, place.experiment)
            if key not in owners:
                owners[key] = owner_of(root, place)
            row |= _owned(owners[key], facts)
            wanted.append((number, entry.path))
    if wanted:
        progress(f"reading {len(wanted)} new or changed result files")
    for read in read_files(root, wanted, facts):
        batch.add(read)
    return batch


def _owned(owner: Owner, facts: RegistryFacts) -> dict[str, Any]:
    name = facts.model_name(owner.model)
    renamed = "" if name == owner.model else f"{owner.model} is {name} in mteb's registry now"
    return {
        "model_name": name,
        "revision": owner.revision,
        "registered": owner.model in facts.model_revisions,
        "repaired": "; ".join(filter(None, (owner.repaired, renamed))),
    }


def _replace(connection: DeclaredConnection, batch: Batch, stale: Sequence[str]) -> None:
    if stale:
        connection.register("_stale", pd.DataFrame({"path": stale}))
        connection.execute(
            "DELETE FROM reference_scores.ingested_cells WHERE file_id IN (SELECT file_id "
            "FROM reference_scores.ingested_files SEMI JOIN _stale USING (path))"
        )
        connection.execute(
            "DELETE FROM reference_scores.ingested_files WHERE path IN (SELECT path FROM _stale)"
        )
    if not batch.files:
        return
    first = connection.execute(
        "SELECT coalesce(max(file_id) + 1, 0) FROM reference_scores.ingested_files"
    ).fetchall()[0][0]
    connection.register("_files", pa.Table.from_pylist(batch.files))
    connection.execute(
        "INSERT INTO reference_scores.ingested_files BY NAME "
        "SELECT * EXCLUDE (number), number + ? AS file_id FROM _files", [first],
    )  # fmt: skip
    connection.register("_cells", pa.concat_tables([_CELL_SCHEMA.empty_table(), *batch.cells]))
    connection.execute(
        "INSERT INTO reference_scores.ingested_cells BY NAME "
        "SELECT * EXCLUDE (number, main_score), number + ? AS file_id, "
        "CASE WHEN isfinite(main_score) THEN main_score END AS main_score FROM _cells", [first],
    )  # fmt: skip


def _pick(connection: DeclaredConnection, facts: RegistryFacts) -> None:
    """Mark the file of each (model, task) that counts."""
    files = connection.execute(
        "SELECT file_id, path AS file, model_name, revision, nullif(mteb_version, '') "
        "AS mteb_version, task_name, experiment FROM reference_scores.ingested_files "
        "WHERE n_cells > 0"
    ).df()
    files["main_revision"] = files["model_name"].map(dict(facts.model_revisions))
    files["picked"] = pick_revisions(files)
    connection.register("_picks", files[["file_id", "picked"]])
    connection.execute("UPDATE reference_scores.ingested_files SET picked = false")
    connection.execute(
        "UPDATE reference_scores.ingested_files f SET picked = true FROM _picks p "
        "WHERE p.file_id = f.file_id AND p.picked"
    )
