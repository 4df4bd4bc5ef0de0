"""Texts of gensim's test data: news documents with human similarity ratings, film reviews.

Lee, Pincombe & Welsh 2005 (50 documents of about 80 words, each pair rated by several people);
Pang & Lee 2005 (sentences that reviewers marked as praise or blame).
"""

from __future__ import annotations

import itertools
from pathlib import Path

from mteblite.sample.tasks.sampling import draw

ENCODING = "cp1252"


def rated_pairs(folder: Path) -> list[tuple[str, str, float]]:
    """Return (text, text, mean rating in [0, 1]) for all 1,225 pairs of documents."""
    data = folder / "test" / "test_data"
    texts = [line for line in _lines(data / "lee.cor") if line]
    ratings = [[float(v) for v in line.split()] for line in _lines(data / "similarities0-1.txt")]
    pairs = itertools.combinations(range(len(texts)), 2)
    return [(texts[i], texts[j], ratings[i][j]) for i, j in pairs]


def polarity_sentences(folder: Path) -> dict[str, list[tuple[str, int]]]:
    """Return (text, label) rows by split; 1 is praise. Half of each label is the train split."""
    rows: dict[int, set[str]] = {0: set(), 1: set()}
    for line in _lines(folder / "test" / "test_data" / "pang_lee_polarity.cor"):
        label, _, text = line.partition(" ")
        rows[int(label == "__label__pos")].add(" ".join(text.split()))
    splits: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for value, texts in rows.items():
        train = set(draw(texts, len(texts) // 2, "PolaritySentences", value))
        splits["train"] += [(text, value) for text in sorted(train)]
        splits["test"] += [(text, value) for text in sorted(texts - train)]
    return {split: sorted(found) for split, found in splits.items()}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding=ENCODING).splitlines()
