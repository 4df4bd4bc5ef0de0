"""All tensors of a model come from its weights, and what a score silently depends on is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.model_identity import identify
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore

Tensors = dict[str, torch.Tensor]
TEXTS = ["word1 word2", "word3"]


def opened(folder: Path, home: Path, **options: Any) -> StoredEncoder:
    spec = SuiteModel.named("m", "f", path=str(folder), **options)
    return open_encoder(spec, identify(spec, home), VectorStore(home / "vectors"), home=home)


def as_safetensors(folder: Path, tensors: Tensors) -> None:
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def as_torch(folder: Path, tensors: Tensors) -> None:
    torch.save(tensors, folder / "pytorch_model.bin")


def as_shards(folder: Path, tensors: Tensors) -> None:
    names, place = sorted(tensors), {}
    for number in (1, 2):
        file = f"model-0000{number}-of-00002.safetensors"
        part = {k: tensors[k] for k in names[number - 1 :: 2]}
        save_file(part, folder / file, metadata={"format": "pt"})
        place |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": 1}, "weight_map": place}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def rewrite(
    folder: Path, save: Callable[[Path, Tensors], None], change: Callable[[Tensors], Tensors]
) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save(folder, change(tensors))


@pytest.mark.parametrize("save", [as_safetensors, as_torch, as_shards])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {f"wrapper.{k}": v for k, v in t.items()}, r"missing.*and .*\(wrapper\."),
        (lambda t: {k: v for k, v in t.items() if "intermediate" not in k}, "2 tensors .*missing"),
        (lambda t: {**t, "extra.weight": torch.zeros(3)}, r"1 tensors \(extra.weight\).*no part"),
    ],
)
def test_weights_of_another_model_are_refused(
    folder: Path, tmp_path: Path, tiny_tasks: Any, save: Any, change: Any, message: str
) -> None:
    rewrite(folder, save, change)
    encoder = opened(folder, tmp_path / "home")
    with pytest.raises(ModelError, match=message) as caught:
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    assert "model 'm'" in str(caught.value)
    assert not list((tmp_path / "home" / "vectors").rglob("*.npy"))


@pytest.mark.parametrize("save", [as_safetensors, as_torch, as_shards])
@pytest.mark.parametrize(
    "change",
    [
        lambda t: {k: v for k, v in t.items() if "pooler" not in k},
        lambda t: {**t, "embeddings.position_ids": torch.arange(64)[None]},
        lambda t: {f"bert.{k}": v for k, v in t.items()},
    ],
)
def test_a_pooler_buffers_and_a_prefix_of_the_library_are_normal(
    whole: Path, folder: Path, tmp_path: Path, tiny_tasks: Any, save: Any, change: Any
) -> None:
    rewrite(folder, save, change)
    task = tiny_tasks.sts.metadata
    found = opened(folder, tmp_path / "home").vectors(TEXTS, task)
    np.testing.assert_array_equal(found, opened(whole, tmp_path / "other").vectors(TEXTS, task))


def test_the_hook_of_a_load_leaves_nothing_behind(
    folder: Path, tmp_path: Path, tiny_tasks: Any
) -> None:
    from transformers import PreTrainedModel

    before = PreTrainedModel.__dict__["from_pretrained"]
    (folder / "config.json").write_text('{"model_type": "nonsense"}')
    encoder = opened(folder, tmp_path / "home")
    with pytest.raises(ModelError, match=r"model 'm' at .*/m cannot be loaded") as caught:
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    assert "\n" not in str(caught.value)
    assert PreTrainedModel.__dict__["from_pretrained"] is before


def test_assumptions_stay_beside_stored_vectors(
    folder: Path, tmp_path: Path, tiny_tasks: Any
) -> None:
    task, home = tiny_tasks.sts.metadata, tmp_path / "home"
    (folder / "modules.json").unlink()
    shutil.rmtree(folder / "1_Pooling")
    encoder = opened(folder, home)
    encoder.vectors(TEXTS, task)
    assert encoder.warnings == ["no modules.json: mean pooling, 16 tokens assumed"]
    again = opened(folder, home)
    again.vectors(TEXTS, task)
    assert again.counts.encoded == 0
    assert again.warnings == encoder.warnings


def test_prompts_that_no_task_uses_are_named(
    static_folder: Callable[..., Path], tmp_path: Path, tiny_tasks: Any
) -> None:
    prompts = {
        "search_query": "q: ", "clustering": "c: ", "query": "q: ", "passage": "p: ", "STS": "s: ",
        "Retrieval-query": "r: ", "STS12": "x: ", "unused": "",
    }  # fmt: skip
    folder, home = static_folder(tmp_path / "m", prompts=prompts), tmp_path / "home"
    encoder = opened(folder, home)
    encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    (warning,) = encoder.warnings
    assert "prompts 'clustering', 'search_query' are used by no task" in warning
    assert opened(folder, home, prompts={"query": "q: "}).warnings == []
    assert opened(folder, home, prompt_strategy="none").warnings == []


def test_texts_beyond_the_positions_are_cut_and_said(
    folder: Path, tmp_path: Path, tiny_tasks: Any
) -> None:
    task = tiny_tasks.sts.metadata
    for name, key in (
        ("tokenizer_config.json", "model_max_length"),
        ("sentence_bert_config.json", "max_seq_length"),
    ):
        config = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**config, key: 2048}))
    encoder = opened(folder, tmp_path / "home")
    long, cut = "word1 " * 300, "word1 " * 64
    first, second = encoder.vectors([long, cut], task)
    np.testing.assert_allclose(first, second, atol=1e-6)
    (warning,) = encoder.warnings
    assert "max_seq_length is 2048 and the model has 64 positions" in warning


def test_tokens_beyond_the_vocabulary_name_model_task_and_text(
    folder: Path, tmp_path: Path, tiny_tasks: Any
) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["word5"] = 9999
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    encoder = opened(folder, tmp_path / "home")
    pattern = r"model m, task TinySTS: .*'word5'.*index out of range.*16 tokens"
    with pytest.raises(ModelError, match=pattern):
        encoder.vectors(["word5"], tiny_tasks.sts.metadata)


def test_a_device_that_is_not_there_is_named(tmp_path: Path, tiny_tasks: Any) -> None:
    home = tmp_path / "home"
    spec = SuiteModel.named("package:minilm-l6", "f")
    settings = EncodingSettings(device="cuda:97")
    store = VectorStore(home / "vectors")
    encoder = open_encoder(spec, identify(spec, home), store, home=home, settings=settings)
    with pytest.raises(ModelError, match=r"MTEBLITE_DEVICE is 'cuda:97'.*it has cpu"):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
