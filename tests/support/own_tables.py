"""Writing the tables of a user's own data in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]


def write_table(file: Path, rows: Rows) -> Path:
    """Write rows as the ending of `file` says; TSV has no quotes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file
    content = _text(file.name.removesuffix(".gz"), rows).encode("utf-8", "surrogatepass")
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def _text(name: str, rows: Rows) -> str:
    if name.endswith(".jsonl"):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    if name.endswith(".tsv"):
        return "".join("\t".join(map(str, line)) + "\n" for line in lines)
    stream = io.StringIO()
    csv.writer(stream).writerows(lines)
    return stream.getvalue()
