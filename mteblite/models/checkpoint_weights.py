"""Whether the files of weights are there and whole, without loading them."""

from __future__ import annotations

import json
import pickletools
import re
import zipfile
from pathlib import Path
from typing import IO

from mteblite.models.checkpoint_files import check_readable, read_config

_WHOLE = ("model.safetensors", "pytorch_model.bin")
_READ = (*_WHOLE, *(f"{name}.index.json" for name in _WHOLE))
_ADAPTER = ("adapter_model.safetensors", "adapter_model.bin")
_SHARD = re.compile(r"(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)")
_TORCH = re.compile(r"(pytorch|adapter)_model.*\.bin")
_OTHER_SUFFIXES = (".onnx", ".xml", ".gguf", ".npz", ".npy")
_SAFE_ROOTS = ("torch", "collections", "numpy", "_codecs")
_FORMATS = {
    "ONNX": ("*.onnx", "onnx/*.onnx"),
    "OpenVINO": ("openvino/*.xml", "openvino_model*.xml"),
    "GGUF": ("*.gguf",),
    "TensorFlow": ("*.h5", "saved_model.pb"),
    "Flax": ("*.msgpack",),
    "pickled": ("*.pt", "*.pth", "*.ckpt"),
    "safetensors of another name": ("*.safetensors",),
}
_BACKENDS = {"ONNX": "onnx", "OpenVINO": "openvino"}
_REMEDIES = {
    "ONNX": "save the model with save_pretrained (MTEBLITE_BACKEND=onnx needs optimum-onnx, of "
    "which no version goes with sentence-transformers 6)",
    "OpenVINO": "set MTEBLITE_BACKEND=openvino, or save the model with save_pretrained",
}


def has_weights(place: Path) -> bool:
    """Whether a folder itself holds torch weights or an adapter, under the names that are read."""
    names = (*_READ, *_ADAPTER)
    return any((place / name).is_file() or (place / name).is_symlink() for name in names)


def check_present(place: Path, label: str, backend: str = "torch") -> None:
    """Refuse a folder without weights that can be read.

    Args:
        place: folder of a transformer or of a module with weights.
        label: what the message begins with.
        backend: `torch`, `onnx` or `openvino`.

    Raises:
        ValueError: names what was found instead.
    """
    if has_weights(place):
        return
    found = {n: sorted(f for p in ps for f in place.glob(p)) for n, ps in _FORMATS.items()}
    if any(found[name] for name, needs in _BACKENDS.items() if needs == backend):
        return
    read = "read are model.safetensors and pytorch_model.bin, whole or in shards"
    shards = sorted(f.name for f in place.iterdir() if _SHARD.fullmatch(f.name))
    if shards:
        index = ("model" if shards[0].endswith("safetensors") else "pytorch_model") + "."
        index += shards[0].rsplit(".", 1)[1] + ".index.json"
        raise ValueError(
            f"{label}{place} holds shards ({shards[0]}, ...) without {index}, which names the "
            "tensors of each: copy it too"
        )
    for name, files in found.items():
        if files:
            remedy = _REMEDIES.get(name, "save the model with save_pretrained")
            raise ValueError(
                f"{label}{place} holds no torch weights, only {name} ({files[0].name}); {read}: "
                f"{remedy}"
            )
    raise ValueError(
        f"{label}{place} holds no weights ({read}): "
        "give the folder that save_pretrained or SentenceTransformer.save wrote"
    )


def check_weights(files: list[Path], label: str, backend: str = "torch") -> None:
    """Check that every file that will be read can be read, and that weights are whole.

    Files of other formats than the backend's, and torch files beside a `model.safetensors`, are
    not read and not checked.

    Raises:
        ValueError: names the first bad file and the remedy.
    """
    safe = {f.parent for f in files if f.name.removesuffix(".index.json") == _WHOLE[0]}
    for file in files:
        other = file.suffix in _OTHER_SUFFIXES and backend == "torch"
        if other or (file.name.startswith("pytorch_model") and file.parent in safe):
            continue
        check_readable(file, label)
        _check_weight_file(file, label)


def _check_weight_file(file: Path, label: str) -> None:
    if file.name.endswith(".index.json"):
        shards = set((read_config(file, label) or {}).get("weight_map", {}).values())
        missing = sorted(s for s in shards if not (file.parent / s).exists())
        if missing:
            raise ValueError(
                f"{label}{file} lists weights that are missing: {missing[:3]}: copy them too"
            )
    elif file.suffix == ".safetensors":
        _check_safetensors(file, label)
    elif _TORCH.fullmatch(file.name):
        _check_torch_file(file, label)


def _check_safetensors(file: Path, label: str) -> None:
    """Refuse a file whose size does not fit its header, as while it is being copied."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(length)) if 8 + length <= size else None
            tensors = (v for k, v in (header or {}).items() if k != "__metadata__")
            end = max((t["data_offsets"][1] for t in tensors), default=0)
        except (ValueError, TypeError, KeyError, AttributeError):
            header, end = None, 0
    if header is None or 8 + length + end != size:
        raise _damaged(file, label)


def _check_torch_file(file: Path, label: str) -> None:
    """Refuse a torch file that is cut short or that names code besides tensors."""
    named: set[str] = set()
    broken: Exception | None = None
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                member = next(n for n in archive.namelist() if n.endswith("data.pkl"))
                with archive.open(member) as stream:
                    named |= _globals(stream)
        else:
            with file.open("rb") as stream:
                # The form before torch 1.6: a magic number, a version, system facts, the tensors.
                for _ in range(4):
                    named |= _globals(stream)
    except (ValueError, StopIteration, zipfile.BadZipFile) as error:
        broken = error
    foreign = sorted(name for name in named if not name.startswith(_SAFE_ROOTS))
    if foreign:
        raise ValueError(
            f"{label}{file} would run code when it is read ({foreign[0]}): save the weights as "
            "safetensors"
        )
    if broken is not None:
        raise _damaged(file, label) from broken


def _globals(stream: IO[bytes]) -> set[str]:
    """The Python objects that one pickle names; none of it is run."""
    named: set[str] = set()
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name == "GLOBAL":
            named.add(str(argument).replace(" ", "."))
        elif opcode.name == "STACK_GLOBAL":
            named.add(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    return named


def _damaged(file: Path, label: str) -> ValueError:
    return ValueError(
        f"{label}{file} is cut short or damaged ({file.stat().st_size} bytes): "
        "wait until it is complete, or copy it again"
    )
