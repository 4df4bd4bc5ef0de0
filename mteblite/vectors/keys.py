"""Key files: one beside each shard names the texts that the shard's rows belong to.

There is no central index, so any number of processes and machines can write without a lock. A
key file's name holds the shard's name and the hash of its own content. It is written after its
shard. A crash in between leaves an unused shard, and its texts are encoded again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mteblite.files import write_whole

logger = logging.getLogger(__name__)

SUFFIX = ".keys"
KEY = np.dtype("V16")
"""The first 16 bytes of a text's SHA-256."""


@dataclass(frozen=True)
class Space:
    """The stored texts of one model and prompt, from the key files of its folder.

    Attributes:
        files: names of the key files that were read.
        shards: shard names, ascending.
        keys: (n,) keys of all texts, ascending and unique.
        number: (n,) position in `shards` of the shard that holds a text.
        row: (n,) row of the text in that shard.
    """

    files: frozenset[str]
    shards: tuple[str, ...]
    keys: np.ndarray
    number: np.ndarray
    row: np.ndarray

    def locate(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return shard number (-1 = not stored) and row of each key asked for."""
        number = np.full(len(asked), -1, dtype=np.int64)
        row = np.zeros(len(asked), dtype=np.int64)
        if len(self.keys):
            place = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
            hit = self.keys[place] == asked
            number[hit], row[hit] = self.number[place[hit]], self.row[place[hit]]
        return number, row


def text_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the key of each text, (n,) of `KEY`."""
    # Lone surrogates occur in scraped text and have no UTF-8 form.
    digests = [hashlib.sha256(t.encode("utf-8", "surrogatepass")).digest()[:16] for t in texts]
    return np.frombuffer(b"".join(digests), dtype=KEY)


def write_keys(folder: Path, shard: str, keys: np.ndarray) -> None:
    """Write the key file of a shard: row i of the shard belongs to text i."""
    content = keys.tobytes()
    write_whole(folder / f"{shard}-{_digest(content)}{SUFFIX}", lambda s: s.write(content))


def key_files(folder: Path) -> frozenset[str]:
    """Return the names of the key files of a folder, which may be absent."""
    return frozenset(p.name for p in folder.glob(f"*{SUFFIX}"))


def read_space(folder: Path, files: frozenset[str]) -> Space:
    """Return the texts of a folder; a damaged key file is removed, and its texts are missing."""
    found = {name: keys for name in sorted(files) if (keys := _read(folder / name)) is not None}
    shards = sorted({_shard(name) for name in found})
    place = {shard: number for number, shard in enumerate(shards)}
    none = np.empty(0, dtype=np.int64)
    numbers = [none, *(np.full(len(k), place[_shard(name)]) for name, k in found.items())]
    rows = [none, *(np.arange(len(k)) for k in found.values())]
    keys = np.concatenate([np.empty(0, dtype=KEY), *found.values()])
    # Two writers can store one text at once. Every reader takes the first shard by name.
    keys, first = np.unique(keys, return_index=True)
    number, row = np.concatenate(numbers)[first], np.concatenate(rows)[first]
    return Space(files, tuple(shards), keys, number, row)


def drop_keys(folder: Path, shard: str) -> None:
    """Remove the key files of a shard, so that its texts count as missing."""
    for path in folder.glob(f"{shard}-*{SUFFIX}"):
        path.unlink(missing_ok=True)


def _shard(name: str) -> str:
    return name.partition("-")[0]


def _read(path: Path) -> np.ndarray | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # another process removed it
        return None
    if path.stem.partition("-")[2] != _digest(content) or len(content) % KEY.itemsize:
        logger.warning("%s does not hold what was written; removed, encode its texts again", path)
        path.unlink(missing_ok=True)
        return None
    return np.frombuffer(content, dtype=KEY)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
