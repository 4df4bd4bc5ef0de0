"""The files of a checkpoint's folder that a loader can open; links are followed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

_MODEL_SUFFIXES = frozenset({
    ".safetensors", ".bin", ".npz", ".npy", ".onnx", ".gguf", ".xml",
    ".json", ".txt", ".model", ".spm", ".vocab", ".jinja", ".py", ".tiktoken", ".codes", ".bpe",
})  # fmt: skip
# Files that trainers and people leave beside a checkpoint. No vector depends on them.
_NOT_MODEL = re.compile(
    r"(?i)(optimizer|scheduler|rng_state|trainer_state|training_args|training_config|README|"
    r"requirements|all_results|train_results|eval_results|model_meta|run_settings|adapter_readme).*"
)
_NOT_MODEL_FOLDER = re.compile(r"(?i)(\..*|checkpoint-\d+|runs|eval|logs?|__pycache__)")


def model_files(folder: Path) -> list[Path]:
    """Return the files that the vectors depend on, sorted by their path below the folder.

    Linked files and folders count like others. A link to a folder above itself is left out.

    Args:
        folder: a checkpoint's folder.
    """
    files = []
    named = {module.split("/")[0] for module in _module_paths(folder)}
    for root, folders, names in os.walk(folder, followlinks=True):
        place = Path(root)
        keep = named if place == folder else set()
        above = {os.path.realpath(p) for p in (place, *place.parents)}
        folders[:] = sorted(
            f
            for f in folders
            if (f in keep or not _NOT_MODEL_FOLDER.fullmatch(f))
            and not ((place / f).is_symlink() and os.path.realpath(place / f) in above)
        )
        files += [
            place / n
            for n in names
            if Path(n).suffix.lower() in _MODEL_SUFFIXES and not _NOT_MODEL.fullmatch(n)
        ]
    return sorted(files, key=lambda f: f.relative_to(folder).as_posix())


def read_config(file: Path, label: str = "") -> Any:
    """Return the content of a JSON file; None where there is no such file.

    Args:
        file: the file.
        label: what the message begins with.

    Raises:
        ValueError: the file is a Git LFS pointer, has a byte order mark or is no JSON.
    """
    if not file.is_file():
        return None
    check_readable(file, label)
    data = file.read_bytes()
    if data.startswith(b"\xef\xbb\xbf"):
        raise ValueError(
            f"{label}{file} starts with a byte order mark, with which no library reads it: "
            "save it as UTF-8 without BOM"
        )
    try:
        return json.loads(data)
    except ValueError as error:
        raise ValueError(f"{label}{file} is no JSON ({error}): copy it again") from error


def check_readable(file: Path, label: str) -> None:
    """Refuse a link to nothing, a file that may not be read, and a Git LFS pointer.

    Raises:
        ValueError: one of these; names the file and the remedy.
    """
    try:
        with file.open("rb") as stream:
            start = stream.read(40)
    except FileNotFoundError as error:
        target = os.path.realpath(file)
        raise ValueError(
            f"{label}{file} is a link to {target}, which does not exist: copy the files that the "
            "links stand for (cp -L, rsync -L)"
        ) from error
    except OSError as error:
        raise ValueError(
            f"{label}{file} cannot be read ({error.strerror}): change its permissions"
        ) from error
    if start.startswith(b"version https://git-lfs"):
        raise ValueError(
            f"{label}{file} is a Git LFS pointer, not the file itself: run `git lfs pull` in its "
            "repository"
        )


def adapter_base(folder: Path) -> str | None:
    """Return the base model (a folder or a hub name) of an adapter; None for other checkpoints.

    Raises:
        ValueError: the base is a relative path, or leads back to the adapter.
    """
    base = _named_base(folder)
    seen, place = {folder.resolve()}, base
    while place and Path(place).is_dir():
        if Path(place).resolve() in seen:
            raise ValueError(
                f"{folder / 'adapter_config.json'}: the base {base!r} leads back to the adapter: "
                "name the model that the adapter was trained on"
            )
        seen.add(Path(place).resolve())
        place = _named_base(Path(place))
    return base


def _named_base(folder: Path) -> str | None:
    file = folder / "adapter_config.json"
    config = read_config(file)
    if config is None:
        return None
    base = str(config.get("base_model_name_or_path") or "")
    if base.startswith("."):
        raise ValueError(
            f"{file}: the base {base!r} is a relative path, which counts from the folder of each "
            "command: write the whole path"
        )
    return base


def _module_paths(folder: Path) -> list[str]:
    """The folders that modules.json names; none where it cannot be read, which a check reports."""
    try:
        entries = json.loads((folder / "modules.json").read_bytes())
        return [str(entry["path"]) for entry in entries if entry.get("path")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []
