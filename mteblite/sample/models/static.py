"""Static models: a text's vector is a mean over a table of word or token vectors.

WordLlama (token table of Llama 2, trained to 256 dimensions) and GloVe (Pennington et al. 2014).
Neither package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from mteblite.sample.models.catalog import VariantSettings
from mteblite.sample.models.package_files import distribution_file
from mteblite.sample.models.parents import Parent

SIF_A = 1e-3
"""Smoothing of inverse frequencies in SIF (Arora et al. 2017), their recommended value."""


class StaticEngine:
    """Means over the rows of a table.

    Args:
        table: (vocabulary, dim) float32.
        tokenize: returns the row numbers of each text; words outside the vocabulary are left out.
        weights: (vocabulary,) weights for pooling `sif`; None where frequencies are unknown.
    """

    def __init__(
        self,
        table: np.ndarray,
        tokenize: Callable[[list[str]], list[list[int]]],
        weights: np.ndarray | None = None,
    ) -> None:
        self._table = table
        self._tokenize = tokenize
        self._weights = weights
        # A text without a known word (Arabic under GloVe) gets the vocabulary's mean, because a
        # zero vector has no cosine.
        self._unknown = table.mean(axis=0, dtype=np.float64).astype(np.float32)

    @classmethod
    def load(cls, parent: Parent) -> StaticEngine:
        """Load GloVe or WordLlama, by the parent's package."""
        files = [distribution_file(*file) for file in parent.files]
        return _load_glove(*files) if parent.name.startswith("glove") else _load_wordllama(*files)

    def pooled(
        self, texts: list[str], variants: Collection[VariantSettings], max_tokens: int | None
    ) -> dict[VariantSettings, np.ndarray]:
        """Return (n, dim) float32 pooled vectors per variant; see `load.Engine`."""
        ids = [row[:max_tokens] for row in self._tokenize(texts)]
        none = np.empty((0, self._table.shape[1]), dtype=np.float32)
        means = {
            pooling: np.stack([self._mean(row, pooling) for row in ids]) if ids else none
            for pooling in {variant.pooling for variant in variants}
        }
        return {variant: means[variant.pooling] for variant in variants}

    def _mean(self, ids: list[int], pooling: str) -> np.ndarray:
        if not ids:
            return self._unknown
        if pooling == "mean":
            return self._table[ids].mean(axis=0)
        if pooling != "sif" or self._weights is None:
            raise ValueError(
                f"pooling {pooling!r} of a static model; expected mean, or sif for GloVe"
            )
        weights = self._weights[ids]
        mean: np.ndarray = weights @ self._table[ids] / weights.sum()
        return mean


def _load_wordllama(weights: object, tokenizer_file: object) -> StaticEngine:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (table,) = load_file(str(weights)).values()
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def tokenize(texts: list[str]) -> list[list[int]]:
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        # The table is shorter than the tokenizer's vocabulary. wordllama clips ids, too.
        return [np.minimum(e.ids, len(table) - 1).tolist() if e.ids else [] for e in encoded]

    return StaticEngine(np.ascontiguousarray(table, dtype=np.float32), tokenize)


def _load_glove(vectors: object, words: object) -> StaticEngine:
    import pyarrow.parquet as pq
    from tokenizers import normalizers, pre_tokenizers

    rows = {w: i for i, w in enumerate(pq.read_table(str(words))["index"].to_pylist())}
    lower, split = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()

    def tokenize(texts: list[str]) -> list[list[int]]:
        pieces = ([w for w, _ in split.pre_tokenize_str(lower.normalize_str(t))] for t in texts)
        return [[rows[w] for w in found if w in rows] for found in pieces]

    table = np.load(str(vectors))
    # The words are sorted by frequency, without counts. Zipf's law gives approximate counts.
    share = 1 / (np.arange(len(table)) + 2.7)
    return StaticEngine(table, tokenize, (SIF_A / (SIF_A + share / share.sum())).astype(np.float32))
