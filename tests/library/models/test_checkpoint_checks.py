"""A folder that holds no whole model is refused by its files alone, in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from mteblite.models.checkpoint_checks import check_checkpoint
from mteblite.models.checkpoint_folder import checkpoint_name
from mteblite.suites.suite_model import SuiteModel

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


def edit(file: Path, **changes: object) -> None:
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**content, **changes}))


def set_modules(folder: Path, *types: str) -> None:
    entries = [{"idx": i, "name": str(i), "path": "", "type": t} for i, t in enumerate(types)]
    (folder / "modules.json").write_text(json.dumps(entries))


def plain(folder: Path, architecture: str) -> None:
    """Only transformers' files, of another architecture."""
    (folder / "modules.json").unlink()
    edit(folder / "config.json", architectures=[architecture])


def shards(folder: Path, *, index: bool, keep: int = 2) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, place = sorted(tensors), {}
    for number in (0, 1):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        part = {k: tensors[k] for k in names[number::2]}
        place |= dict.fromkeys(part, file)
        if number < keep:
            save_file(part, folder / file)
    if index:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))


def only(folder: Path, name: str, content: bytes = b"x" * 100) -> None:
    (folder / "model.safetensors").unlink()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)


def evil() -> bytes:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, ("true",)

    return pickle.dumps({"x": Evil()})


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-50])


def unlink(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


ST = "sentence_transformers.sentence_transformer.modules."
CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pointer": (
        lambda f: (f / "model.safetensors").write_text(POINTER),
        r"model\.safetensors is a Git LFS pointer.*git lfs pull",
    ),
    "pointer-bin": (
        lambda f: only(f, "pytorch_model.bin", POINTER.encode()),
        r"pytorch_model\.bin is a Git LFS pointer",
    ),
    "pointer-tokenizer": (
        lambda f: (f / "tokenizer.json").write_text(POINTER),
        r"tokenizer\.json is a Git LFS pointer",
    ),
    "cut": (lambda f: cut(f / "model.safetensors"), "cut short or damaged"),
    "cut-bin": (lambda f: only(f, "pytorch_model.bin", b"PK\3\4 half"), "cut short or damaged"),
    "evil-bin": (
        lambda f: only(f, "pytorch_model.bin", evil()),
        r"would run code when it is read \(\w+\.system\).*safetensors",
    ),
    "no-index": (
        lambda f: shards(f, index=False),
        r"shards.* without model\.safetensors\.index\.json",
    ),
    "no-shard": (lambda f: shards(f, index=True, keep=1), r"missing: .*model-00002"),
    "onnx": (
        lambda f: only(f, "onnx/model.onnx"),
        "only ONNX .*: save the model .*no version goes",
    ),
    "openvino": (
        lambda f: only(f, "openvino/openvino_model.xml"),
        "OpenVINO .*set MTEBLITE_BACKEND=openvino",
    ),
    "gguf": (lambda f: only(f, "model.gguf"), r"only GGUF .*read are model\.safetensors"),
    "tensorflow": (lambda f: only(f, "tf_model.h5"), "only TensorFlow"),
    "flax": (lambda f: only(f, "flax_model.msgpack"), "only Flax"),
    "other-name": (lambda f: only(f, "weights.safetensors"), "safetensors"),
    "no-weights": (lambda f: unlink(f / "model.safetensors"), "holds no weights"),
    "no-tokenizer": (
        lambda f: unlink(f / "tokenizer.json", f / "vocab.txt"),
        r"no whole tokenizer; missing: tokenizer\.json",
    ),
    "half-tokenizer": (
        lambda f: ((f / "tokenizer.json").unlink(), (f / "vocab.json").write_text("{}")),
        r"missing: merges\.txt",
    ),
    "no-config": (lambda f: unlink(f / "config.json"), r"config\.json does not exist"),
    "no-pooling": (lambda f: shutil.rmtree(f / "1_Pooling"), "'1_Pooling' of Pooling"),
    "bom": (
        lambda f: (f / "config.json").write_bytes(
            b"\xef\xbb\xbf" + (f / "config.json").read_bytes()
        ),
        r"config\.json starts with a byte order mark",
    ),
    "no-json": (lambda f: (f / "modules.json").write_text("[{"), r"modules\.json is no JSON"),
    "dangling": (
        lambda f: (unlink(f / "config.json"), (f / "config.json").symlink_to(f / "gone")),
        "is a link to .*gone",
    ),
    "default-prompt": (
        lambda f: edit(f / "config_sentence_transformers.json", default_prompt_name="passage"),
        "default_prompt_name is 'passage', which is none",
    ),
    "cross-encoder": (lambda f: plain(f, "BertForSequenceClassification"), "cross-encoder"),
    "token-classifier": (lambda f: plain(f, "BertForTokenClassification"), "token classifier"),
    "masked-lm": (lambda f: plain(f, "XLMRobertaForMaskedLM"), "masked language model"),
    "causal-lm": (lambda f: plain(f, "GPT2LMHeadModel"), "language model"),
    "t5": (lambda f: plain(f, "T5ForConditionalGeneration"), "text generation"),
    "colbert": (lambda f: plain(f, "HF_ColBERT"), "multi-vector"),
    "model-type": (
        lambda f: edit(f / "config_sentence_transformers.json", model_type="SparseEncoder"),
        "is a SparseEncoder",
    ),
    "splade": (
        lambda f: set_modules(f, "sentence_transformers.sparse_encoder.models.MLMTransformer"),
        "SparseEncoder",
    ),
    "no-pool": (lambda f: set_modules(f, ST + "Transformer", ST + "Dense"), "one vector per token"),
    "own-code": (
        lambda f: (set_modules(f, "custom.Transformer"), (f / "custom.py").write_text("")),
        r"its own Python code \(custom\.py\).*trust_remote_code",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_folder_without_a_whole_model_is_refused(folder: Path, case: str) -> None:
    spoil, message = CASES[case]
    check_checkpoint(folder)
    spoil(folder)
    with pytest.raises(ValueError, match=message) as caught:
        check_checkpoint(folder, "model 'm': ")
    sentence = str(caught.value)
    assert sentence.startswith("model 'm': ")
    assert "\n" not in sentence
    assert str(folder) in sentence


def test_other_forms_of_the_same_weights_are_taken(folder: Path, tmp_path: Path) -> None:
    import torch

    sharded = shutil.copytree(folder, tmp_path / "sharded")
    shards(sharded, index=True)
    check_checkpoint(sharded)
    pickled = shutil.copytree(folder, tmp_path / "pickled")
    tensors = {k: torch.from_numpy(v) for k, v in load_file(folder / "model.safetensors").items()}
    (pickled / "model.safetensors").unlink()
    torch.save(tensors, pickled / "pytorch_model.bin")
    check_checkpoint(pickled)
    torch.save(tensors, pickled / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    check_checkpoint(pickled)
    # What is not read may be a pointer: a clone with only the safetensors pulled.
    (folder / "pytorch_model.bin").write_text(POINTER)
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_text(POINTER)
    check_checkpoint(folder)
    only(folder, "onnx/model.onnx")
    (folder / "pytorch_model.bin").unlink()
    check_checkpoint(folder, backend="onnx")


def test_folders_of_models_name_what_they_hold(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for step in (500, 1000):
        shutil.copytree(folder, run / f"checkpoint-{step}")
    with pytest.raises(ValueError, match=r"checkpoints: checkpoint-500, checkpoint-1000: name one"):
        check_checkpoint(run)
    shutil.copytree(folder, tmp_path / "nested" / "best_model")
    with pytest.raises(ValueError, match=r"holds models: best_model: give .*best_model"):
        check_checkpoint(tmp_path / "nested")
    snapshot = tmp_path / "hub" / "models--me--m" / "snapshots" / "0123abcd"
    shutil.copytree(folder, snapshot)
    for place in (tmp_path / "hub", tmp_path / "hub" / "models--me--m"):
        with pytest.raises(ValueError, match=r"cache of the hub: name its snapshot, .*/0123abcd"):
            check_checkpoint(place)
    check_checkpoint(snapshot)


def test_an_adapters_base_is_checked_too(folder: Path, tmp_path: Path) -> None:
    adapter = shutil.copytree(folder, tmp_path / "adapter")
    (adapter / "config.json").unlink()
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    edit(adapter / "adapter_config.json", base_model_name_or_path=str(folder))
    check_checkpoint(adapter)
    cut(folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"base of the adapter: .*cut short"):
        check_checkpoint(adapter)


def test_the_check_imports_no_library_of_models(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from mteblite.models.checkpoint_checks import check_checkpoint\n"
        "check_checkpoint(Path(sys.argv[1]))\n"
        "print({'torch', 'transformers', 'sentence_transformers', 'mteb'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_every_folder_of_a_parent_is_a_model_of_its_own_name(tmp_path: Path) -> None:
    names = [
        "模型", "模型-最终版", "Ü-mödel", "my model (best)", "my-model-best", "a|b", "a,b", "a b",
        "..hidden..", "hidden", "+norm", "m@dim=64", "x" * 240, "x" * 239, "一" * 80, "[x]", "...",
    ]  # fmt: skip
    found = [checkpoint_name(tmp_path / name) for name in names]
    assert len(set(found)) == len(names)
    for name in found:
        assert SuiteModel.named(name).base == name
        assert len(f".{name}.12345678.{os.getpid()}.1234567890123456789".encode()) < 255
    assert found[:3] == names[:3]
    assert checkpoint_name(tmp_path / "run-a" / "checkpoint-500") == "run-a-checkpoint-500"
    with pytest.raises(ValueError, match="240 bytes; at most 200"):
        SuiteModel.named("x" * 240)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.safetensors.index.json", '{"weight_map": ["a"]}'),
        ("model.safetensors.index.json", '{"weight_map": {"a": 5}}'),
        ("adapter_config.json", "[]"),
        ("config.json", "[" * 100_000),
        ("tokenizer.json", "[" * 100_000),
    ],
)
def test_malformed_files_are_one_sentence(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=r"^m: [^\n]+$"):
        check_checkpoint(folder, "m: ")


@pytest.mark.parametrize("relative", [False, True])
def test_a_base_that_leads_back_or_is_relative_is_refused(folder: Path, relative: bool) -> None:
    base = "../m" if relative else str(folder)
    edit(folder / "adapter_config.json", base_model_name_or_path=base)
    with pytest.raises(ValueError, match="relative path" if relative else "leads back"):
        check_checkpoint(folder, "m: ")
