"""A fake encoder that notes what mteb asks it to encode."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class NotingEncoder:
    """Vectors are hashes of the texts; every text asked for is noted, per call."""

    def __init__(self) -> None:
        from mteb.models.model_meta import ModelMeta

        self.mteb_model_meta = ModelMeta.create_empty()
        self.calls: list[list[str]] = []

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        """Return (n, 32) vectors in about the unit range."""
        texts = [text for batch in inputs for text in batch["text"]]
        self.calls.append(texts)
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = np.array([np.frombuffer(d, np.uint8) for d in digests]).astype(np.float32)
        return (vectors - 127.5) / 512

    def similarity(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return cosines; summarization compares single vectors."""
        unit = [v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (one, other)]
        return np.asarray(unit[0] @ unit[1].T)

    def similarity_pairwise(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the cosines row by row."""
        return np.asarray(np.diag(self.similarity(one, other)))


def evaluate_noting(task: Any) -> tuple[list[list[str]], Any]:
    """Run `mteb.evaluate` on a task object; return the texts of each encode call and the result."""
    import mteb

    encoder = NotingEncoder()
    results = mteb.evaluate(encoder, task, cache=None, show_progress_bar=False)
    return encoder.calls, results.task_results[0]
