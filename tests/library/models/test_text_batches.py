"""Feeding sentence-transformers models: little padding, the right order, devices and precision."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.model_identity import identify
from mteblite.models.text_batches import BatchedEncoder, token_counts
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore

# Long words are one token each, short ones as well: characters say nothing about tokens.
TEXTS = [" ".join(["unknown" * 8] * (n % 2) + ["word1"] * (n % 7 + 1)) for n in range(40)]


def wrapped(folder: Path) -> Any:
    from mteb.models import SentenceTransformerEncoderWrapper

    return SentenceTransformerEncoderWrapper(str(folder), device="cpu")


def call(tiny_tasks: Any) -> dict[str, Any]:
    task = tiny_tasks.sts.metadata
    return {"task_metadata": task, "hf_split": "test", "hf_subset": "default", "prompt_type": None}


def opened(home: Path, folder: Path, **settings: Any) -> Any:
    spec = SuiteModel.named("m", "f", path=str(folder))
    return open_encoder(
        spec, identify(spec, home), VectorStore(home / "vectors"), home=home,
        settings=EncodingSettings(**settings),
    )  # fmt: skip


def test_batches_hold_texts_of_like_token_counts(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    inner = wrapped(bert_folder(tmp_path / "bert"))
    masks: list[Any] = []
    inner.model.register_forward_pre_hook(lambda _, given: masks.append(given[0]["attention_mask"]))
    BatchedEncoder(inner, 8).encode(TEXTS, **call(tiny_tasks))
    own, widths = padding(masks), [mask.shape[1] for mask in masks]
    assert [len(mask) for mask in masks] == [8] * 5
    assert widths == sorted(widths, reverse=True)
    masks.clear()
    inner.model.encode(TEXTS, batch_size=8)
    assert own < padding(masks) / 2


def padding(masks: list[Any]) -> int:
    return sum(int((mask == 0).sum()) for mask in masks)


def test_vectors_come_in_the_order_of_the_texts(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    inner = wrapped(bert_folder(tmp_path / "bert"))
    found = BatchedEncoder(inner, 8).encode(TEXTS, **call(tiny_tasks))
    np.testing.assert_allclose(found, inner.model.encode(TEXTS), atol=1e-6)


def test_counts_end_at_the_limit_of_the_model(
    tmp_path: Path, bert_folder: Callable[..., Path]
) -> None:
    inner = wrapped(bert_folder(tmp_path / "bert", max_seq_length=16))
    counts = token_counts(inner, ["word1", "word1 word2 word3", "word1 " * 500])
    assert counts is not None
    assert counts.tolist() == [1, 3, 16]


def test_static_model_is_asked_once(tmp_path: Path, static_folder: Callable[..., Path]) -> None:
    assert token_counts(wrapped(static_folder(tmp_path / "static")), TEXTS) is None


class Stranger:
    """An encoder of mteb's protocol that is none of mteb's wrappers."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        self.asked.append([text for batch in inputs for text in batch["text"]])
        return np.array([[len(text), 1.0] for text in self.asked[-1]])


def test_other_encoders_get_all_texts_as_they_are() -> None:
    model = Stranger()
    found = BatchedEncoder(model, 8).encode(TEXTS)  # type: ignore[arg-type]
    assert model.asked == [TEXTS]
    assert found[:, 0].tolist() == [len(text) for text in TEXTS]


def test_other_encoders_run_on_one_device() -> None:
    with pytest.raises(ValueError, match="Stranger, which runs on one device: name one"):
        BatchedEncoder(Stranger(), 8, ["cuda:0", "cuda:1"])  # type: ignore[arg-type]


def test_devices_are_named_with_commas() -> None:
    settings = EncodingSettings(device="cuda:0, cuda:1")
    assert settings.devices == ("cuda:0", "cuda:1")
    assert settings.load_device == "cpu"
    assert settings.numerics == "", "where a model runs is no part of an address"
    assert EncodingSettings(device="cuda:1").load_device == "cuda:1"
    assert EncodingSettings().load_device is None


@pytest.mark.slow
def test_two_processes_give_the_vectors_of_one(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    folder = bert_folder(tmp_path / "bert")
    task = tiny_tasks.sts.metadata
    one = opened(tmp_path / "one", folder, device="cpu", batch_size=8)
    two = opened(tmp_path / "two", folder, device="cpu,cpu", batch_size=8)
    try:
        found = two.vectors(TEXTS, task)
        np.testing.assert_allclose(found, one.vectors(TEXTS, task), atol=1e-6)
        processes = two._model._batched._pool["processes"]
        assert len(processes) == 2
    finally:
        two.close()
    assert two._model._batched is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_has_its_own_address_and_stays_near(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any, dtype: str
) -> None:
    folder, task = bert_folder(tmp_path / "bert"), tiny_tasks.sts.metadata
    whole = opened(tmp_path, folder).vectors(TEXTS, task)
    encoder = opened(tmp_path, folder, dtype=dtype)
    half = encoder.vectors(TEXTS, task)
    assert encoder.counts.encoded == len(set(TEXTS)), "float32 vectors were taken for its own"
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, whole, atol=0.05)
    assert not np.array_equal(half, whole)


@pytest.mark.parametrize(
    ("backend", "packages"),
    [("onnx", "optimum-onnx and onnxruntime"), ("openvino", "optimum-intel and openvino")],
)
def test_backend_that_is_not_installed_names_packages_and_their_command(
    tmp_path: Path, static_folder: Callable[..., Path], backend: str, packages: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import importlib.util
    from importlib.metadata import version

    find, absent = importlib.util.find_spec, ("optimum", "onnxruntime", "openvino")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n.startswith(absent) else find(n, *a)
    )
    encoder = opened(tmp_path, static_folder(tmp_path / "static"), backend=backend)
    with pytest.raises(ValueError, match="choose backend torch") as caught:
        encoder.vectors(["word1"], SimpleNamespace(name="Task", type="STS"))
    said = str(caught.value)
    assert f"backend '{backend}' of model 'm' needs {packages}, not installed" in said
    # not without the version: pip would go back to a sentence-transformers that is too old
    own = version("sentence-transformers")
    assert f"`pip install 'sentence-transformers[{backend}]=={own}'`" in said
    assert ("choose openvino" in said) == (backend == "onnx")


@pytest.mark.parametrize("holds", ["nothing", "what breaks"])
def test_half_a_backend_is_told_as_well(
    tmp_path: Path, bert_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, holds: str
) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    package = tmp_path / "packages/optimum"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    if holds == "what breaks":  # as with a transformers that it is not made for
        (package / "onnxruntime.py").write_text("from transformers import gone_for_good\n")
    monkeypatch.syspath_prepend(package.parent)
    for name in ("optimum", "optimum.onnxruntime"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    encoder = opened(tmp_path, bert_folder(tmp_path / "bert"), backend="onnx")
    told = "needs optimum-onnx, not installed" if holds == "nothing" else "does not work with the"
    with pytest.raises(ValueError, match=rf"{told}[\s\S]*sentence-transformers\[onnx\]=="):
        encoder.vectors(["word1"], SimpleNamespace(name="Task", type="STS"))


def test_openvino_gives_the_vectors_of_torch(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    pytest.importorskip("optimum.intel.openvino", reason="OpenVINO is not installed")
    folder, task = bert_folder(tmp_path / "bert"), tiny_tasks.sts.metadata
    whole = opened(tmp_path, folder).vectors(TEXTS, task)
    encoder = opened(tmp_path, folder, backend="openvino", device="cpu")
    np.testing.assert_allclose(encoder.vectors(TEXTS, task), whole, atol=1e-3)
    assert encoder.counts.encoded == len(set(TEXTS)), "vectors of torch were taken for its own"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("MTEBLITE_BACKEND", "tensorrt", r"MTEBLITE_BACKEND is 'tensorrt': .*'onnx'"),
        ("MTEBLITE_DEVICE", "gpu", "MTEBLITE_DEVICE is 'gpu': .*allowed: cpu, cuda"),
        ("MTEBLITE_DEVICE", "cuda:0,gpu", "MTEBLITE_DEVICE is 'cuda:0,gpu': 'gpu' is no device"),
        ("MTEBLITE_DTYPE", "int8", "MTEBLITE_DTYPE is 'int8': .*'bfloat16'"),
        ("MTEBLITE_BATCH_SIZE", "many", "MTEBLITE_BATCH_SIZE is 'many': .*valid integer"),
        ("MTEBLITE_BATCH_SIZE", "0", "MTEBLITE_BATCH_SIZE is '0': .*greater than or equal to 1"),
    ],
)
def test_settings_of_the_environment_are_checked_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    from mteblite_resources.resources import default_resources

    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=message):
        default_resources()["encoders"].get_settings()


def test_the_environment_chooses_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from mteblite_resources.resources import default_resources

    monkeypatch.setenv("MTEBLITE_BACKEND", "openvino")
    monkeypatch.setenv("MTEBLITE_BATCH_SIZE", "8")
    settings = default_resources()["encoders"].get_settings()
    assert (settings.backend, settings.batch_size) == ("openvino", 8)
    assert settings.numerics == "openvino", "its vectors are no vectors of torch"
