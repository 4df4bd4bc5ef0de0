"""Documents of a retrieval task by row: ids in memory, texts on demand.

A benchmark's corpus may have millions of documents (MS MARCO: 8.8 M), and a pool keeps some
thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

BATCH = 8192
"""Documents at a time: about 50 MB of texts and tokens for documents of usual length."""


@dataclass(frozen=True)
class Corpus:
    """Document ids in memory, texts on demand.

    Attributes:
        ids: one id per row, as str; ids may repeat (the first row of an id is the document).
        fetch: rows -> their texts, in the same order. Consecutive rows come as a `range`, which a
            memory-mapped table reads many times as fast.
    """

    ids: list[str]
    fetch: Callable[[Sequence[int]], list[Any]]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of these rows, in this order.

        Raises:
            ValueError: a text is missing; the message names row and document id.
        """
        rows = rows if isinstance(rows, range) else [int(row) for row in rows]
        values = self.fetch(rows) if rows else []
        for row, value in zip(rows, values, strict=True):
            if not isinstance(value, str):
                raise ValueError(
                    f"corpus: the text in row {row} (document id {self.ids[row]!r}) is {value!r}; "
                    "expected a string: mend or drop that row of the corpus"
                )
        return values

    def batches(self, size: int = BATCH) -> Iterator[list[str]]:
        """Yield all texts in row order, `size` at a time."""
        for start in range(0, len(self.ids), size):
            yield self.texts(range(start, min(start + size, len(self.ids))))

    @classmethod
    def from_columns(cls, ids: Sequence[Any], texts: Sequence[Any]) -> Corpus:
        """Return a corpus over two columns of equal length.

        Raises:
            ValueError: the lengths differ.
        """
        if len(ids) != len(texts):
            raise ValueError(
                f"corpus: {len(ids)} ids but {len(texts)} texts; expected one text per id"
            )
        column = list(texts)
        return cls(ids=[str(i) for i in ids], fetch=lambda rows: [column[row] for row in rows])

    @classmethod
    def from_dataset(
        cls, dataset: Any, id_column: str, text_of: Callable[[dict[str, list[Any]]], list[Any]]
    ) -> Corpus:
        """Return a corpus over a memory-mapped `datasets.Dataset`.

        `text_of` makes texts of a dict of columns, e.g. joins title and body.
        """
        return cls(
            ids=[str(i) for i in dataset[id_column][:]],
            fetch=lambda rows: text_of(
                dataset[rows.start : rows.stop]
                if isinstance(rows, range) and rows.step == 1
                else dataset[list(rows)]
            ),
        )
