"""Example titles and operation descriptions of AWS's API definitions, read from botocore.

Each example has a title ("To copy a snapshot") and belongs to an operation. The title is a query,
and the operation's documentation is its only relevant document. Other documents are not judged and
may be relevant, too.
"""

from __future__ import annotations

import gzip
import html
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mteblite.sample.tasks.sampling import draw

N_QUERIES, N_DOCUMENTS = 200, 600
N_SENTENCES = 2
MIN_WORDS = 4


@dataclass(frozen=True)
class Retrieval:
    """Queries, documents and the one relevant document of each query, by id."""

    queries: dict[str, str]
    documents: dict[str, str]
    relevant: dict[str, str]


def task_to_operation(folder: Path, members: list[str]) -> Retrieval:
    """Return 200 queries and 600 documents; a document's id is `service.Operation`.

    Args:
        folder: botocore's folder.
        members: relative paths of the files: examples and definitions, one pair per service.
    """
    titles: dict[str, set[str]] = {}
    documents: dict[str, str] = {}
    for examples in (m for m in members if "/examples-1.json" in m):
        found = _titles(folder / examples)
        if found:
            service = examples.split("/")[1]
            (definition,) = [
                m for m in members if m.startswith(examples.rsplit("/", 1)[0] + "/service-2")
            ]
            documents |= {f"{service}.{op}": text for op, text in _documents(folder / definition)}
            for operation, title in found:
                titles.setdefault(title, set()).add(f"{service}.{operation}")
    documents = _distinct_texts(documents)
    candidates = [
        (next(iter(ids)), title)
        for title, ids in sorted(titles.items())
        if len(ids) == 1 and next(iter(ids)) in documents and _is_query(title, next(iter(ids)))
    ]
    # At most one query per operation, because two titles of an operation are near duplicates.
    queries = draw(dict(candidates).items(), N_QUERIES, "AwsTaskToOperation", "queries")
    relevant = {document for document, _ in queries}
    others = draw(
        set(documents) - relevant, N_DOCUMENTS - N_QUERIES, "AwsTaskToOperation", "others"
    )
    return Retrieval(
        queries={f"q-{document}": title for document, title in queries},
        documents={document: documents[document] for document in sorted([*relevant, *others])},
        relevant={f"q-{document}": document for document, _ in queries},
    )


def _titles(path: Path) -> list[tuple[str, str]]:
    examples = _json(path).get("examples") or {}
    rows = [(op, x.get("title") or "") for op, listed in examples.items() for x in listed]
    return [(op, " ".join(title.split())) for op, title in rows if title.strip()]


def _documents(path: Path) -> list[tuple[str, str]]:
    operations = _json(path)["operations"]
    rows = [
        (op, _first_sentences(facts.get("documentation") or "")) for op, facts in operations.items()
    ]
    return [(op, text) for op, text in rows if len(text.split()) >= MIN_WORDS]


def _first_sentences(documentation: str) -> str:
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", documentation)).split())
    text = re.sub(r"\s+([.,;:])", r"\1", text)
    return " ".join(re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)[:N_SENTENCES])


def _distinct_texts(documents: dict[str, str]) -> dict[str, str]:
    """Documents with a unique text; equal texts of two services would both be relevant."""
    times = Counter(documents.values())
    return {key: text for key, text in documents.items() if times[text] == 1}


def _is_query(title: str, document: str) -> bool:
    """Whether a title is long enough and does not hold the operation's name."""
    letters = re.sub(r"[^a-z]", "", title.lower())
    operation = document.split(".", 1)[1].lower()
    return len(title.split()) >= MIN_WORDS and operation not in letters


def _json(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    loaded: dict[str, Any] = json.loads(data)
    return loaded
