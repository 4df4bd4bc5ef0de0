"""Fast reading of result files: only main scores are decoded, in several processes for many files.

pydantic's parser makes Python objects of declared fields only, and accepts the bare NaN that mteb
writes for other metrics. orjson refuses NaN; the standard library is about seven times slower.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.reference_scores.result_format import RefusedFile, ResultFile, read_result

if TYPE_CHECKING:
    import pyarrow as pa

WORTH_PROCESSES = 8000
"""Smallest number of files for which several processes are faster than one."""
PROCESSES = 8
"""Largest number of processes; with more, writing in the parent limits the speed."""


@dataclass
class ReadFiles:
    """Some files as read, in columns.

    Attributes:
        files: by number: the file without its cells.
        refused: by number: why a file is refused.
        cells: one row per cell: `number` of the file, then the fields of `Cell`; a missing score
            is NaN.
    """

    files: dict[int, ResultFile] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    cells: list[pa.Table] = field(default_factory=list)


def read_files(
    root: Path, files: Sequence[tuple[int, str]], facts: RegistryFacts
) -> Iterator[ReadFiles]:
    """Read result files and yield them in a few parts.

    Args:
        root: the results folder.
        files: number in the result, and path below root.
        facts: mteb's registry.
    """
    n = min(os.cpu_count() or 1, PROCESSES) if len(files) >= WORTH_PROCESSES else 1
    # Every n-th file, so that no process gets all the large ones.
    shares = [files[start::n] for start in range(n)]
    if n == 1:
        yield read_share(str(root), shares[0], facts)
        return
    with tempfile.TemporaryDirectory(prefix="mteblite-reading-") as scratch:
        children = [
            _start(Path(scratch, str(place)), root, share, facts)
            for place, share in enumerate(shares[1:])
        ]
        yield read_share(str(root), shares[0], facts)
        for place, (child, share) in enumerate(zip(children, shares[1:], strict=True)):
            if child.wait() == 0:
                yield _collect(Path(scratch, str(place)))
            else:  # killed, or out of memory
                yield read_share(str(root), share, facts)


def read_share(root: str, files: Sequence[tuple[int, str]], facts: RegistryFacts) -> ReadFiles:
    """Read result files in this process."""
    import pyarrow as pa

    found = ReadFiles()
    columns: dict[str, Any] = {
        "number": array("i"), "split": [], "hf_subset": [], "entry_ix": array("h"),
        "main_score": array("d"), "repaired": [], "refused": [],
    }  # fmt: skip
    for number, path in files:
        try:
            result = read_result_file(f"{root}/{path}", facts)
        except (RefusedFile, OSError) as error:
            found.refused[number] = str(error)
            continue
        found.files[number] = replace(result, cells=(), n_cells=len(result.cells))
        splits, subsets, places, scores, repaired, refused = zip(*result.cells, strict=True)
        columns["number"].extend([number] * len(splits))
        columns["split"].extend(splits)
        columns["hf_subset"].extend(subsets)
        columns["entry_ix"].extend(places)
        columns["main_score"].extend(math.nan if s is None else s for s in scores)
        columns["repaired"].extend(repaired)
        columns["refused"].extend(refused)
        if len(columns["split"]) > 200_000:
            found.cells.append(pa.table(columns))
            columns = {name: values[:0] for name, values in columns.items()}
    if columns["split"]:
        found.cells.append(pa.table(columns))
    return found


def read_result_file(path: Path | str, facts: RegistryFacts) -> ResultFile:
    """Read one result file.

    Raises:
        RefusedFile: not JSON, or not a result file of mteb; has the reason.
        OSError: the file cannot be read.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (a Path of each costs as much)
        text = file.read()
    main_scores = _main_scores_of(text)
    if main_scores is not None:
        found = read_result(main_scores, facts)
        if found.n_missing == 0:
            return found
    # The old format, or a cell whose score has only the name of its metric.
    try:
        data = json.loads(text)
        found = read_result(data, facts)
    except RefusedFile:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedFile(f"no JSON: {error}") from error
    return _storable(found)


def _storable(found: ResultFile) -> ResultFile:
    """Refuse half a surrogate pair, which JSON may hold and a text column may not."""
    try:
        texts = (found.task_name, found.mteb_version, found.dataset_revision)
        "".join((*texts, *(f"{c.split}{c.hf_subset}" for c in found.cells))).encode()
    except UnicodeEncodeError as error:
        raise RefusedFile(f"no text: {error}") from error
    return found


# --- other processes -------------------------------------------------------------------------
# They are not multiprocessing's: forked processes may inherit locks of DuckDB's or Dagster's
# threads, and spawned processes run the parent's main module again.


def _start(
    folder: Path, root: Path, share: Sequence[tuple[int, str]], facts: RegistryFacts
) -> subprocess.Popen[bytes]:
    folder.mkdir()
    order = {"root": str(root), "files": list(share), "facts": asdict(facts)}
    (folder / "order.json").write_text(json.dumps(order))
    code = "import sys; from mteblite_resources.result_reading import work; work(sys.argv[1])"
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], env={**os.environ, "PYTHONPATH": paths}
    )


def work(folder: str) -> None:
    """Read the files of an order and write their content beside it; runs in a child process."""
    import pyarrow as pa

    order = json.loads(Path(folder, "order.json").read_text())
    found = read_share(order["root"], order["files"], RegistryFacts(**order["facts"]))
    facts = {
        "files": {number: asdict(result) for number, result in found.files.items()},
        "refused": found.refused,
    }
    Path(folder, "files.json").write_text(json.dumps(facts))
    if found.cells:
        with pa.OSFile(f"{folder}/cells.arrow", "wb") as sink:  # noqa: SIM117
            with pa.ipc.new_file(sink, found.cells[0].schema) as writer:
                for table in found.cells:
                    writer.write_table(table)


def _collect(folder: Path) -> ReadFiles:
    import pyarrow as pa

    facts = json.loads((folder / "files.json").read_text())
    cells = folder / "cells.arrow"
    tables = [pa.ipc.open_file(cells.read_bytes()).read_all()] if cells.exists() else []
    return ReadFiles(
        {int(n): ResultFile(**{**r, "cells": ()}) for n, r in facts["files"].items()},
        {int(n): reason for n, reason in facts["refused"].items()},
        tables,
    )


# --- decoding --------------------------------------------------------------------------------


class _Cell(TypedDict, total=False):
    hf_subset: Any
    main_score: Any


class _Document(TypedDict, total=False):
    """The fields of a result file that are decoded."""

    task_name: Any
    mteb_version: Any
    dataset_revision: Any
    scores: dict[str, list[_Cell]]


def _main_scores_of(text: bytes) -> Any:
    """Return the main scores of a file of the present format; None for any other file."""
    from pydantic import ValidationError

    try:
        data = _main_scores().validate_json(text)
    except ValidationError:
        return None
    return data if data.get("scores") and data.get("task_name") else None


@cache
def _main_scores() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_Document)
