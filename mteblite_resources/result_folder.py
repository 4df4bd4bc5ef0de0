"""The files of a folder of mteb results, from directory entries only.

The layout is that of mteb's `ResultCache` and of the public results repository:
`results/<model>/<revision>/<task>.json` with a `model_meta.json` beside, and ablations one level
deeper under `experiments/<name>/`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

META = "model_meta.json"
EXPERIMENTS = "experiments"


class Entry(NamedTuple):
    """One file of a results folder.

    Attributes:
        path: relative to the folder, with "/".
        size: bytes.
        mtime_ns: time of the last change.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Place:
    """Parts of a path `results/<model>/<revision>[/experiments/<name>]/<file>`."""

    model_folder: str
    revision: str
    experiment: str
    name: str

    @property
    def is_result(self) -> bool:
        """Whether the path can be that of a result file."""
        return bool(self.revision) and self.name.endswith(".json") and self.name != META


def results_root(folder: Path) -> Path:
    """Return the folder of the models' folders: `results` below the given one, or the given one."""
    inner = folder / "results"
    return inner if inner.is_dir() else folder


def list_folder(root: Path) -> list[Entry]:
    """Return all files of a results folder that are not hidden, sorted by path.

    Raises:
        ValueError: a link leads to a folder that contains the link.
    """
    return sorted(_walk(str(root), ""))


def fingerprint(entries: Iterable[Entry]) -> str:
    """Return the hash of all paths, sizes and times (16 hex digits)."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(f"{entry.path}\0{entry.size}\0{entry.mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def place_of(path: str) -> Place:
    """Return the parts of a relative path; a file in another place has no revision."""
    parts = path.split("/")
    if len(parts) == 3:
        return Place(parts[0], parts[1], "", parts[2])
    if len(parts) == 5 and parts[2] == EXPERIMENTS:
        return Place(parts[0], parts[1], parts[3], parts[4])
    return Place("", "", "", parts[-1])


def folder_name(model: str) -> str:
    """Return the folder of a model, like mteb's `ModelMeta.model_name_as_path`."""
    return model.replace("/", "__").replace(" ", "_")


@dataclass(frozen=True)
class Owner:
    """The model whose results a folder holds.

    Attributes:
        model: the model's name; with the suffix of a variant, e.g. `x/y (embed_dim=512)`.
        revision: the revision that was run.
        repaired: what is guessed, else "".
    """

    model: str
    revision: str
    repaired: str = ""


def owner_of(root: Path, place: Place) -> Owner:
    """Return name and revision from `model_meta.json`, else from the names of the folders.

    A folder's name does not determine the model's name, because spaces are replaced by `_`.
    """
    folder = root / place.model_folder / place.revision
    candidates: Sequence[Path] = [folder / META]
    if place.experiment:
        candidates = [folder / EXPERIMENTS / place.experiment / META, folder / META]
    for path in candidates:
        try:
            meta = json.loads(path.read_text(encoding="utf-8"))
            name, revision = meta["name"], meta.get("revision")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(name, str) and name:
            return Owner(name, str(revision or place.revision))
    name = place.model_folder.replace("__", "/", 1)
    return Owner(name, place.revision, f"no {META} that names the model: name from its folder")


def _walk(folder: str, prefix: str, linked_from: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Yield the entries below a folder; `linked_from` are the folders with links to it."""
    with os.scandir(folder) as found:
        for item in found:
            if item.name.startswith("."):
                continue
            if item.is_dir():
                above = linked_from
                if item.is_symlink():
                    above = (*linked_from, os.path.realpath(folder))
                    _require_no_loop(item.path, above)
                yield from _walk(item.path, f"{prefix}{item.name}/", above)
            else:
                try:
                    facts = item.stat()
                except FileNotFoundError:  # a broken link, refused when it is opened
                    facts = item.stat(follow_symlinks=False)
                yield Entry(prefix + item.name, facts.st_size, facts.st_mtime_ns)


def _require_no_loop(link: str, above: Sequence[str]) -> None:
    target = os.path.realpath(link)
    if any(os.path.commonpath([target, folder]) == target for folder in above):
        raise ValueError(
            f"{link} is a link to {target}, a folder that holds it, so its files repeat without "
            "end: remove the link"
        )
