"""The stored encoder: encode once, the right bytes, and clear words about bad encoders."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mteblite.models.encoders import EncodingSettings
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.model_identity import ModelIdentity
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.address import Address
from mteblite.vectors.store import VectorStore
from mteblite.vectors.vector_values import check_vectors, derive_variant

TASK = SimpleNamespace(name="Task", type="STS")
TEXTS = [f"text {i}" for i in range(40)]


class CountingModel:
    """Vectors from the length and the digits of a text; remembers what it was asked."""

    def __init__(self) -> None:
        self.chunks: list[list[str]] = []
        self.siblings: dict[str, int] = {}

    def address(self, task: Any, prompt_type: str) -> Address:
        return Address({"query": "q: ", "document": "d: "}.get(prompt_type, ""))

    def encode(
        self, texts: list[str], task: Any, prompt_type: str, split: str, hf_subset: str
    ) -> dict[str, Any]:
        self.chunks.append(texts)
        before = self.address(task, prompt_type).prompt
        rows = np.array([[len(before + t), sum(map(ord, before + t)), 3.0, 4.0] for t in texts])
        own = {"base": self.spoil(rows.astype(np.float32))}
        return own | {name: rows[:, :dim] for name, dim in self.siblings.items()}

    def spoil(self, rows: np.ndarray) -> Any:
        return rows

    @property
    def limits(self) -> tuple[int | None, int | None]:
        return 512, None

    def similarity(self, a: Any, b: Any, *, pairwise: bool) -> Any:
        return a @ b.T

    def close(self) -> None:
        self.chunks = []

    @property
    def encoded(self) -> list[str]:
        return [text for chunk in self.chunks for text in chunk]


def stored(
    root: Path, model: CountingModel | None = None, name: str = "m", chunk: int = 8
) -> tuple[StoredEncoder, CountingModel]:
    model = model or CountingModel()
    identity = ModelIdentity("own", "revision", "local", "base")
    settings = EncodingSettings(chunk_size=chunk)
    spec = SuiteModel.named(name, "f")
    return StoredEncoder(spec, identity, VectorStore(root), model, settings), model


def test_each_distinct_text_is_encoded_once(tmp_path: Path) -> None:
    encoder, model = stored(tmp_path)
    first = encoder.vectors([*TEXTS, *TEXTS[:5]], TASK)
    np.testing.assert_array_equal(first[-5:], first[:5])
    np.testing.assert_array_equal(first[:, 0], [len(t) for t in [*TEXTS, *TEXTS[:5]]])
    assert sorted(model.encoded) == sorted(TEXTS)
    more = encoder.vectors([*TEXTS[10:], "new"], TASK)
    assert model.encoded.count("new") == 1
    assert len(model.encoded) == len(TEXTS) + 1
    np.testing.assert_array_equal(more[:-1], first[10:-5])
    assert (encoder.counts.encoded, encoder.counts.found) == (len(TEXTS) + 1, 30)


def test_prompts_are_apart_and_none_means_no_prompt(tmp_path: Path) -> None:
    encoder, model = stored(tmp_path)
    query, document = (encoder.vectors(["a"], TASK, kind) for kind in ("query", "document"))
    plain = encoder.vectors(["a"], TASK, None)
    assert len({float(v[0, 1]) for v in (query, document, plain)}) == 3
    np.testing.assert_array_equal(encoder.vectors(["a"], TASK, ""), plain)
    assert len(model.encoded) == 3
    with pytest.raises(ValueError, match="prompt type 'passage'"):
        encoder.vectors(["a"], TASK, "passage")


def test_killed_run_keeps_chunks_and_continues_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, reference = stored(tmp_path / "a")
    undisturbed.vectors(TEXTS, TASK)

    class Dies(CountingModel):
        def spoil(self, rows: np.ndarray) -> np.ndarray:
            if len(self.chunks) == 3:
                raise KeyboardInterrupt
            return rows

    encoder, dying = stored(tmp_path / "b", Dies())
    with pytest.raises(KeyboardInterrupt):
        encoder.vectors(TEXTS, TASK)
    again, model = stored(tmp_path / "b")
    again.vectors(TEXTS, TASK)
    assert again.counts.found == 16
    # The same chunks as without the interruption, so the same padding and the same bytes.
    assert dying.chunks[:2] + model.chunks == reference.chunks


def test_chunks_do_not_depend_on_the_order_of_texts(tmp_path: Path) -> None:
    first, model = stored(tmp_path / "a")
    second, other = stored(tmp_path / "b")
    first.vectors(TEXTS, TASK)
    second.vectors(TEXTS[::-1], TASK)
    assert model.chunks == other.chunks


def test_a_damaged_shard_is_encoded_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder, model = stored(tmp_path)
    before = encoder.vectors(TEXTS, TASK)
    (shard,) = tmp_path.glob("*/*/*.npy")
    shard.write_bytes(shard.read_bytes()[:-5])
    np.testing.assert_array_equal(encoder.vectors(TEXTS, TASK), before)
    assert len(model.encoded) == 2 * len(TEXTS)
    assert shard.name in caplog.text


def test_siblings_of_one_pass_are_stored(tmp_path: Path) -> None:
    encoder, model = stored(tmp_path)
    model.siblings = {"sibling": 2}
    encoder.vectors(TEXTS, TASK)
    fingerprint = model.address(TASK, "").fingerprint()
    assert VectorStore(tmp_path).get("sibling", fingerprint, TEXTS).shape == (len(TEXTS), 2)


def test_variants_are_read_from_the_checkpoints_vectors(tmp_path: Path) -> None:
    plain, _ = stored(tmp_path)
    whole = plain.vectors(TEXTS, TASK)
    for name, width in (("m+norm", 4), ("m@dim=2", 2)):
        variant, untouched = stored(tmp_path, name=name)
        got = variant.vectors(TEXTS, TASK)
        expected = whole[:, :width] / np.linalg.norm(whole[:, :width], axis=1, keepdims=True)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        assert got.dtype == np.float32
        assert untouched.encoded == []
    with pytest.raises(ValueError, match="asks for 5 dimensions; m has 4"):
        stored(tmp_path, name="m@dim=5")[0].vectors(TEXTS, TASK)


def test_a_zero_vector_stays_zero() -> None:
    got = derive_variant(np.zeros((2, 4), np.float32), SuiteModel.named("m+norm", "f"))
    np.testing.assert_array_equal(got, np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows[:-1], r"shape \(7, 4\) for 8 texts"),
        (lambda rows: rows[0], r"shape \(4,\) for 8 texts"),
        (lambda rows: rows[:, :0], r"shape \(8, 0\)"),
        (lambda rows: [r[: i + 1] for i, r in enumerate(rows)], "no matrix of numbers"),
        (lambda rows: np.where(rows == rows[2], np.nan, rows), "hold NaN or infinite"),
        (lambda rows: None, "expected"),
    ],
)
def test_bad_encoders_are_named(tmp_path: Path, spoil: Any, message: str) -> None:
    encoder, model = stored(tmp_path)
    model.spoil = spoil  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=message) as caught:
        encoder.vectors(TEXTS, TASK)
    assert "model m, task Task" in str(caught.value)
    model.spoil = lambda rows: rows  # type: ignore[method-assign]
    assert encoder.vectors(TEXTS, TASK).shape == (40, 4)


def test_first_bad_text_is_named() -> None:
    rows = np.ones((3, 2), np.float32)
    rows[1:, 0] = np.inf
    with pytest.raises(ValueError, match=r"2 of 3 vectors .* text 'b'"):
        check_vectors(rows, ["a", "b", "c"], "model m")


def test_changing_width_is_refused_and_good_chunks_kept(tmp_path: Path) -> None:
    encoder, model = stored(tmp_path)
    model.spoil = lambda rows: rows if len(model.chunks) < 3 else rows[:, :2]  # type: ignore
    with pytest.raises(ValueError, match="width"):
        encoder.vectors(TEXTS, TASK)


def test_errors_of_the_encoder_carry_model_and_task(tmp_path: Path) -> None:
    encoder, model = stored(tmp_path)

    def fails(rows: np.ndarray) -> np.ndarray:
        raise MemoryError("out of memory")

    model.spoil = fails  # type: ignore[method-assign]
    with pytest.raises(
        ModelError, match=r"model m, task Task: the 8 texts from 'text .*memory.*cut at 512"
    ):
        encoder.vectors(TEXTS, TASK)


def test_texts_must_be_strings(tmp_path: Path) -> None:
    encoder, _ = stored(tmp_path)
    with pytest.raises(ValueError, match="Task: text 1 is None"):
        encoder.vectors(["a", None], TASK)  # type: ignore[list-item]
