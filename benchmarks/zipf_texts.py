"""Generated texts with the word frequencies of a language: word number r has probability ~ 1/r."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

VOCABULARY = 200_000
WORDS = np.array([f"w{rank}" for rank in range(VOCABULARY)], dtype=object)
CUMULATIVE = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
CUMULATIVE /= CUMULATIVE[-1]
BLOCK = 8192


def document(row: int) -> str:
    """Return document number `row`."""
    return documents([row])[0]


def documents(rows: Sequence[int]) -> list[str]:
    """Return documents of 30 to 119 words, each a function of its number alone."""
    if isinstance(rows, range) and rows.start % BLOCK == 0 and len(rows) <= BLOCK:
        return _block(rows.start // BLOCK)[: len(rows)]
    blocks = {number: _block(number) for number in {row // BLOCK for row in rows}}
    return [blocks[row // BLOCK][row % BLOCK] for row in rows]


def queries(number: int) -> list[str]:
    """Return queries of 8 words with the word frequencies of the documents."""
    rng = np.random.default_rng([1, number])
    return [" ".join(_draw(rng, 8)) for _ in range(number)]


def _block(number: int) -> list[str]:
    rng = np.random.default_rng([0, number])
    lengths = rng.integers(30, 120, BLOCK)
    words = _draw(rng, int(lengths.sum()))
    ends = np.cumsum(lengths)
    return [" ".join(words[a:z]) for a, z in zip(ends - lengths, ends, strict=True)]


def _draw(rng: np.random.Generator, number: int) -> list[str]:
    drawn: list[str] = WORDS[np.searchsorted(CUMULATIVE, rng.random(number))].tolist()
    return drawn
