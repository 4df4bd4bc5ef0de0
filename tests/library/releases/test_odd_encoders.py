"""Encoders that give constant, random, merged or partly missing vectors, scored on a release."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from support import kept_files, pool_tasks
from support.releases import fitted_task, whole_pool

import mteblite
from mteblite.lite_scores.chance import ChanceTest
from mteblite.lite_scores.observing import observe_selection
from mteblite.pools.restriction import restrict

DIM = 64
Vectors = Callable[[Sequence[str]], np.ndarray]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> mteblite.SuiteRelease:
    pytest.importorskip("simple_icd_10_cm", reason="the extra `sample` is not installed")
    folder: Path = kept_files.unpack_release(tmp_path_factory.mktemp("kept"))
    return mteblite.load_release(folder)


class Encoder:
    """Any object that encodes texts."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.vectors(texts)


def of_key(key: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(key.encode())).normal(size=DIM)


def random(texts: Sequence[str]) -> np.ndarray:
    return np.array([of_key(t) for t in texts])


def words(texts: Sequence[str]) -> np.ndarray:
    """A bag of three-letter parts of words."""
    found = []
    for text in texts:
        parts = [w[i : i + 3] for w in re.findall(r"\w+|\S", text.lower()) for i in range(len(w))]
        found.append(np.sum([of_key(p) for p in parts or ["-"]], axis=0) / np.sqrt(len(parts) or 1))
    return np.array(found)


def warnings(vectors: Vectors, release: mteblite.SuiteRelease) -> tuple[str, ...]:
    scores = mteblite.score(Encoder(vectors), release)
    assert np.isfinite([scores.value, scores.lower, scores.upper]).all()
    assert scores.lower <= scores.value <= scores.upper
    return scores.warnings


def test_constant_vectors_are_said_and_score_as_chance(release: mteblite.SuiteRelease) -> None:
    (warning,) = warnings(lambda texts: np.ones((len(texts), DIM)), release)
    assert warning.startswith("degenerate: all texts of every task got the same vector")


def test_random_vectors_are_said_in_one_sentence() -> None:
    found = ChanceTest()
    for kind in sorted(pool_tasks.TYPES):
        task = fitted_task(whole_pool(kind))
        pool = restrict(whole_pool(kind), task.selection["item_id"].tolist())
        vectors = random(pool.texts["text"].tolist()).astype(np.float32)
        seen = observe_selection(task.kind, pool, vectors, task.selection)
        found.add(task, pool, vectors, seen, "cosine")
    (warning,) = found.warning()
    assert warning.startswith("random: on 7 tasks the model scores no better")


def test_two_tasks_call_no_model_random_and_three_clear_ones_are_enough() -> None:
    assert ChanceTest([0.0, 0.0]).warning() == []
    assert ChanceTest([0.0, 0.0, 0.0]).warning() != []
    assert ChanceTest([0.0, 2.0, 2.0]).warning() == []


def test_a_merge_of_two_models_has_a_sound_interval(release: mteblite.SuiteRelease) -> None:
    assert warnings(lambda texts: (words(texts) + random(texts)) / 2, release) == ()


def test_a_text_without_a_number_is_named(release: mteblite.SuiteRelease) -> None:
    def some(texts: Sequence[str]) -> np.ndarray:
        found = words(texts)
        found[len(texts) // 2] = np.nan
        return found

    with pytest.raises(ValueError, match="vectors hold NaN or infinite values"):
        mteblite.score(Encoder(some), release)
