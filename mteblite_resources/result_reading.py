"""Reading result files fast: only main scores are decoded, in several processes for many files.

pydantic's parser goes through the whole JSON but makes Python objects of declared fields alone,
and takes the bare NaN that mteb writes for other metrics (orjson refuses it, the standard library
is some seven times slower).
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from mteblite_assets.reference_scores.registry_facts import RegistryFacts
from mteblite_assets.reference_scores.result_format import (
    RefusedFile,
    ResultFile,
    needs_all_metrics,
    read_result,
)

CHUNK = 500
WORTH_PROCESSES = 4000
"""Files from which on starting processes pays."""


class ReadFile(NamedTuple):
    """A file as read: its content, or why it is refused ("" = it is not)."""

    number: int
    result: ResultFile | None
    refused: str


def read_files(
    root: Path, files: Sequence[tuple[int, str]], facts: RegistryFacts
) -> Iterator[list[ReadFile]]:
    """Read result files and yield them in chunks.

    Args:
        root: the results folder.
        files: a number that comes back, and the path below root.
        facts: mteb's registry.
    """
    chunks = [files[start : start + CHUNK] for start in range(0, len(files), CHUNK)]
    if len(files) < WORTH_PROCESSES or (os.cpu_count() or 1) < 2:
        for chunk in chunks:
            yield _read_chunk(str(root), chunk, facts)
        return
    yield from _in_processes(root, chunks, facts)


def read_result_file(path: Path, facts: RegistryFacts) -> ResultFile:
    """Read one result file.

    Raises:
        RefusedFile: no JSON, or no result file of mteb; says why.
        OSError: the file cannot be read.
    """
    return read_result(_decoded(path.read_bytes()), facts)


def _in_processes(
    root: Path, chunks: Sequence[Sequence[tuple[int, str]]], facts: RegistryFacts
) -> Iterator[list[ReadFile]]:
    done = 0
    try:
        # Not forked: the parent may hold locks of DuckDB's or Dagster's threads.
        with ProcessPoolExecutor(
            max_workers=min(os.cpu_count() or 1, 8),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(str(root), facts),
        ) as pool:
            for read in pool.map(_read_own_chunk, chunks):
                done += 1
                yield read
    except BrokenProcessPool:  # e.g. a parent whose main module cannot be imported again
        for chunk in chunks[done:]:
            yield _read_chunk(str(root), chunk, facts)


_OWN: dict[str, Any] = {}


def _begin(root: str, facts: RegistryFacts) -> None:
    _OWN.update(root=root, facts=facts)


def _read_own_chunk(chunk: Sequence[tuple[int, str]]) -> list[ReadFile]:
    return _read_chunk(_OWN["root"], chunk, _OWN["facts"])


def _read_chunk(
    root: str, chunk: Sequence[tuple[int, str]], facts: RegistryFacts
) -> list[ReadFile]:
    read = []
    for number, path in chunk:
        try:
            found = read_result_file(Path(root, path), facts)
        except (RefusedFile, OSError) as error:
            read.append(ReadFile(number, None, str(error)))
            continue
        read.append(ReadFile(number, found, ""))
    return read


def _decoded(text: bytes) -> Any:
    """The decoded file: main scores alone where that is enough."""
    from pydantic import ValidationError

    try:
        data = _main_scores().validate_json(text)
    except ValidationError:
        data = None
    if data is not None and not needs_all_metrics(data):
        return data
    try:
        return json.loads(text)
    except ValueError as error:
        raise RefusedFile(f"no JSON: {error}") from error


class _Cell(TypedDict, total=False):
    hf_subset: Any
    main_score: Any


class _Document(TypedDict, total=False):
    """What of a result file is decoded; everything else is skipped."""

    task_name: Any
    mteb_version: Any
    dataset_revision: Any
    scores: dict[str, list[_Cell]]


@cache
def _main_scores() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_Document)
