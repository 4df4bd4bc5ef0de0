"""The public API: a release scores names, folders and loaded models alike, and compares two."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import kept_files

import mteblite

pytestmark = pytest.mark.usefixtures("sample_extra")


@pytest.fixture(scope="module")
def sample_extra() -> None:
    pytest.importorskip("simple_icd_10_cm", reason="the extra `sample` is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_files.unpack_release(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def release(folder: Path) -> mteblite.SuiteRelease:
    return mteblite.load_release(folder)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, bert_folder: Callable[..., Path]) -> Path:
    return bert_folder(tmp_path_factory.mktemp("models") / "tiny bert")


def same(a: mteblite.Scores, b: mteblite.Scores) -> None:
    assert a.means["macro_mean"] == pytest.approx(b.means["macro_mean"], abs=1e-6)
    for task, observed in a.observed.items():
        np.testing.assert_allclose(observed, b.observed[task], atol=1e-6)
    columns = ["task", "predicted", "lower", "upper", "n_items"]
    pd.testing.assert_frame_equal(a.tasks[columns], b.tasks[columns], atol=1e-6)


def test_a_release_of_the_version_before_the_floors_gives_the_same_scores(folder: Path) -> None:
    expected = kept_files.expected()["release_score"]
    scores = mteblite.score(kept_files.MODEL, folder)
    assert (scores.release, scores.suite) == (expected["release"], expected["suite"])
    assert scores.headline == expected["headline"]
    assert (scores.value, scores.lower, scores.upper) == pytest.approx(
        (expected["macro_mean"], expected["macro_lower"], expected["macro_upper"]), abs=1e-9
    )
    wanted = pd.DataFrame(expected["tasks"])
    pd.testing.assert_frame_equal(scores.tasks[list(wanted)], wanted, atol=1e-9, check_dtype=False)
    wanted = pd.DataFrame(expected["types"])
    pd.testing.assert_frame_equal(scores.types[list(wanted)], wanted, atol=1e-9, check_dtype=False)


def test_a_folder_and_the_model_loaded_from_it_score_alike(
    release: mteblite.SuiteRelease, checkpoint: Path
) -> None:
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    by_folder = mteblite.score(checkpoint, release)
    assert re.fullmatch("tiny-bert-[0-9a-f]{6}", by_folder.model), "a space was replaced"
    assert by_folder.n_encoded == by_folder.n_texts
    model = SentenceTransformer(str(checkpoint), device="cpu")
    model.train()
    limit = model.max_seq_length
    same(mteblite.score(model, release), by_folder)
    assert model.training
    assert model.max_seq_length == limit
    same(mteblite.score(SentenceTransformerEncoderWrapper(model), release), by_folder)


def test_any_object_that_encodes_texts_is_scored(
    release: mteblite.SuiteRelease, checkpoint: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    class Wrapper:
        """Gives lists of floats, as a client of a service does."""

        def __init__(self) -> None:
            self.model = None
            self._inner = SentenceTransformer(str(checkpoint), device="cpu")

        def encode(self, texts: list[str]) -> list[list[float]]:
            return self._inner.encode(texts, show_progress_bar=False).tolist()

    scores = mteblite.score(Wrapper(), release)
    assert scores.model == "Wrapper"
    same(scores, mteblite.score(checkpoint, release))


def test_vectors_are_kept_where_a_cache_is_named_and_nowhere_else(
    release: mteblite.SuiteRelease, checkpoint: Path, tmp_path: Path
) -> None:
    first = mteblite.score(str(checkpoint), release, cache=tmp_path)
    again = mteblite.score(str(checkpoint), release, cache=tmp_path)
    assert (first.n_encoded > 0, again.n_encoded) == (True, 0)
    same(first, again)


def test_a_token_cap_of_the_release_is_taken_back_from_a_loaded_model(
    release: mteblite.SuiteRelease, checkpoint: Path
) -> None:
    from dataclasses import replace

    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(checkpoint), device="cpu")
    capped = replace(release, max_tokens=4)
    same(mteblite.score(model, capped), mteblite.score(checkpoint, capped))
    assert model.max_seq_length == 16


def test_two_models_are_compared_by_name_or_by_their_scores(
    release: mteblite.SuiteRelease,
) -> None:
    one, two = (mteblite.score(f"package:{m}", release) for m in ("wordllama-64", "glove-50d"))
    found = mteblite.compare(one, two, release)
    rows = found.differences.set_index("target")
    assert set(rows.index) >= {"macro", "mean", "task:EmojiGroupAr"}
    assert rows.loc["macro", "difference"] == pytest.approx(one.value - two.value, abs=0.02)
    assert rows["lower"].le(rows["difference"]).all()
    by_name = mteblite.compare("package:wordllama-64", "package:glove-50d", release)
    pd.testing.assert_frame_equal(by_name.differences, found.differences)
    itself = mteblite.compare(one, one, release).differences
    assert set(itself["verdict"]) == {"undecided"}
    assert itself["difference"].eq(0).all()


def test_bad_use_is_said_in_one_sentence(release: mteblite.SuiteRelease, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"dict has no encode\(\): expected a model name"):
        mteblite.score({}, release)
    with pytest.raises(ValueError, match=r"no folder .*gone"):
        mteblite.score(tmp_path / "gone", release)
    with pytest.raises(mteblite.ReleaseError, match="no folder"):
        mteblite.score(kept_files.MODEL, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="the release has no own data of that name"):
        mteblite.score(kept_files.MODEL, release, data={"Mine": tmp_path})
    other: Any = mteblite.score(kept_files.MODEL, release)
    from dataclasses import replace

    with pytest.raises(ValueError, match="are of release other-1, and this is kept-"):
        mteblite.compare(replace(other, release="other-1"), other, release)


def test_vectors_that_are_no_numbers_are_refused(release: mteblite.SuiteRelease) -> None:
    class Broken:
        def encode(self, texts: list[str]) -> np.ndarray:
            return np.full((len(texts), 4), np.nan)

    with pytest.raises(ValueError, match=r"model Broken, task EmojiGroupAr: .* NaN"):
        mteblite.score(Broken(), release)


def test_released_tasks_are_mteb_tasks_of_the_selected_items(folder: Path) -> None:
    tasks = mteblite.released_tasks(folder)
    assert [t.metadata.name for t in tasks] == ["EmojiGroupAr", "ICD10CMSynonym"]


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mteblite.nothing
    assert set(dir(mteblite)) == set(mteblite.__all__)
