"""Checks of a checkpoint's folder by its files alone, before the model is registered or run.

No weights are loaded and no library of models is imported, so that sensors can call it.
"""

from __future__ import annotations

from pathlib import Path

from mteblite.models.checkpoint_files import adapter_base, model_files, read_config
from mteblite.models.checkpoint_modules import (
    Module,
    check_default_prompt,
    check_kind,
    check_module_files,
    check_own_code,
    read_modules,
)
from mteblite.models.checkpoint_weights import check_present, check_weights, has_weights

_CONFIGS = ("config.json", "modules.json", "adapter_config.json")
_JSON_BYTES = 1_000_000
_TOKENIZERS = (
    ("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"), ("*.model",), ("*.spm",),
    ("*.tiktoken",), ("sentencepiece*",), ("*.vocab",),
)  # fmt: skip
_NO_VOCABULARY = ("ByT5", "Canine", "Perceiver")


def check_checkpoint(
    folder: Path, label: str = "", *, backend: str = "torch", trusted: bool = False
) -> None:
    """Refuse a folder that holds no model that can be run, or only part of one.

    Args:
        folder: the folder of a checkpoint.
        label: what a message begins with, such as the model's name.
        backend: `torch`, `onnx` or `openvino`.
        trusted: whether the checkpoint's own Python code may run.

    Raises:
        ValueError: one sentence that names the file or folder, and the remedy.
    """
    if not folder.is_dir():
        raise ValueError(f"{label}no folder at {folder}: check the path, or mount it")
    try:
        base = _checked_base(folder, label, backend, trusted)
    except OSError as error:
        raise ValueError(f"{label}{error.filename} cannot be read ({error.strerror})") from error
    except (AttributeError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{label}a file of {folder} is not as the libraries write it "
            f"({type(error).__name__}): copy the checkpoint again"
        ) from error
    if base and Path(base).is_dir():
        check_checkpoint(Path(base), f"{label}base of the adapter: ", backend=backend)


def _checked_base(folder: Path, label: str, backend: str, trusted: bool) -> str | None:
    """Check one folder; return the base of an adapter."""
    _check_layout(folder, label)
    files = model_files(folder)
    check_weights(files, label, backend)
    _check_json(files, label)
    base = adapter_base(folder)
    modules = read_modules(folder, label)
    check_kind(folder, modules, label)
    check_own_code(modules, folder, label, trusted=trusted)
    check_default_prompt(folder, label)
    check_module_files(modules, label)
    for module in modules:
        _check_module(module, label, backend, is_adapter=bool(base))
    return base


def _check_module(module: Module, label: str, backend: str, *, is_adapter: bool) -> None:
    if module.kind == "Transformer":
        check_present(module.folder, label, backend)
        if not is_adapter and read_config(module.folder / "config.json") is None:
            raise ValueError(
                f"{label}{module.folder / 'config.json'} does not exist, which says what the "
                "weights are: copy it too"
            )
    elif module.has_weights:
        check_present(module.folder, label)
    if module.kind in ("Transformer", "StaticEmbedding") and not is_adapter:
        _check_tokenizer(module.folder, label)


def _check_tokenizer(place: Path, label: str) -> None:
    if any(all(any(place.glob(p)) for p in patterns) for patterns in _TOKENIZERS):
        return
    config = read_config(place / "tokenizer_config.json", label) or {}
    kind = str(config.get("tokenizer_class") or "")
    if "auto_map" in config or kind.startswith(_NO_VOCABULARY):
        return
    part = next((n for n in ("vocab.json", "merges.txt") if (place / n).is_file()), None)
    wanted = {"vocab.json": "merges.txt", "merges.txt": "vocab.json"}.get(
        part or "", "tokenizer.json, or vocab.txt, vocab.json and merges.txt, or a *.model file"
    )
    raise ValueError(
        f"{label}{place} holds no whole tokenizer; missing: {wanted}: copy the tokenizer's files, "
        "or save it with save_pretrained"
    )


def _check_json(files: list[Path], label: str) -> None:
    """Check that JSON files can be read; of a large one, such as a vocabulary, only its ends."""
    for file in (f for f in files if f.suffix == ".json"):
        if file.stat().st_size <= _JSON_BYTES:
            read_config(file, label)
            continue
        with file.open("rb") as stream:
            first = stream.read(1)
            stream.seek(-64, 2)
            last = stream.read().rstrip()[-1:]
        if first + last not in (b"{}", b"[]"):
            raise ValueError(f"{label}{file} is cut short or no JSON: copy it again")


def _check_layout(folder: Path, label: str) -> None:
    """Refuse a folder of models instead of a model; names the models in it."""
    if any((folder / name).exists() for name in _CONFIGS) or has_weights(folder):
        return
    found = [*folder.glob("snapshots/*"), *folder.glob("models--*/snapshots/*")]
    snapshots = sorted(p for p in found if p.is_dir())
    if snapshots:
        raise ValueError(
            f"{label}{folder} is a cache of the hub: name its snapshot, "
            f"{' or '.join(map(str, snapshots[:3]))}"
        )
    inner = sorted(
        (p for p in folder.iterdir() if p.is_dir() and (has_weights(p) or _has_modules(p))),
        key=lambda p: (len(p.name), p.name),
    )
    if inner:
        names = ", ".join(p.name for p in inner[:5]) + (", ..." if len(inner) > 5 else "")
        kind = "checkpoints" if inner[0].name.startswith("checkpoint-") else "models"
        remedy = f"give {inner[0]}" if len(inner) == 1 else "name one"
        raise ValueError(f"{label}{folder} holds {kind}: {names}: {remedy}")


def _has_modules(place: Path) -> bool:
    return (place / "modules.json").is_file()
