"""Vectors by content: a text is encoded once per model, prompt and token cap.

Layout: `<root>/<model_fp>/<prompt_fp>/<shard>.npy`, float32, named by the hash of its content. The
key file beside it names the text of each row (`keys.py`). Both are written complete or not at all,
so a crash loses no stored vector, and no writer waits for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mteblite.vectors.keys import Space, drop_keys, key_files, read_space, text_keys, write_keys
from mteblite.vectors.shards import gather, open_shard, write_shard
from mteblite.vectors.vector_values import check_vectors


class DamagedShardError(ValueError):
    """A shard could not be read; it was dropped, so its texts count as missing again."""


@dataclass(frozen=True)
class Located:
    """Where texts lie: shard number (-1 = not stored) and row per text, and the shards' names."""

    number: np.ndarray
    row: np.ndarray
    shards: tuple[str, ...]

    @property
    def absent(self) -> np.ndarray:
        """Positions (ascending) of the texts that are not stored."""
        return np.flatnonzero(self.number < 0)


class VectorStore:
    """Content-addressed vectors on disk."""

    def __init__(self, root: Path) -> None:
        """Open a store in a folder, which is made on first use."""
        self.root = root
        self._spaces: dict[Path, Space] = {}

    def locate(self, model_fp: str, prompt_fp: str, texts: Sequence[str]) -> Located:
        """Return where texts lie now; `get` takes it to save a second look-up."""
        return self._locate(self.root / model_fp / prompt_fp, text_keys(texts))

    def put(self, model_fp: str, prompt_fp: str, texts: Sequence[str], vectors: np.ndarray) -> int:
        """Store the vectors of texts; texts already stored keep their vectors.

        Args:
            model_fp: the checkpoint's fingerprint.
            prompt_fp: the address's fingerprint (`Address.fingerprint`).
            texts: n texts; of repeated ones the first counts.
            vectors: (n, dim) finite floats.

        Returns:
            How many texts were new.

        Raises:
            ValueError: the shape does not fit, a value is not finite, or the width differs from
                that of the vectors stored at this address.
        """
        folder = self.root / model_fp / prompt_fp
        array = check_vectors(vectors, texts, f"model {model_fp}, prompt {prompt_fp}")
        keys = text_keys(texts)
        located = self._locate(folder, keys)
        if located.shards and (width := self._width(folder, located)) not in (0, array.shape[1]):
            raise ValueError(
                f"vectors of width {array.shape[1]} for model {model_fp}, prompt {prompt_fp}, "
                f"where width {width} is stored: the model changed but not its identity"
            )
        new = located.absent
        new = new[np.sort(np.unique(keys[new], return_index=True)[1])]
        if len(new) == 0:
            return 0
        shard = write_shard(folder, np.ascontiguousarray(array[new]))
        write_keys(folder, shard, keys[new])
        return len(new)

    def get(
        self, model_fp: str, prompt_fp: str, texts: Sequence[str], located: Located | None = None
    ) -> np.ndarray:
        """Return the stored vectors, (n, dim) float32, in the order of the texts.

        Args:
            model_fp: the checkpoint's fingerprint.
            prompt_fp: the address's fingerprint.
            texts: any number, repeats allowed.
            located: the result of `locate` for these texts; None = look them up.

        Raises:
            KeyError: some texts are not stored; names their number and the first.
            DamagedShardError: a shard is damaged; names it. It is removed: encode again.
        """
        if located is None:
            located = self.locate(model_fp, prompt_fp, texts)
        absent = located.absent
        if len(absent):
            raise KeyError(
                f"{len(absent)} of {len(texts)} texts are not stored for model {model_fp}, prompt "
                f"{prompt_fp}; the first is {texts[absent[0]][:80]!r}: encode them first"
            )
        out: np.ndarray | None = None
        order = np.argsort(located.number, kind="stable")
        cuts = np.searchsorted(located.number[order], np.arange(len(located.shards) + 1))
        for i, shard in enumerate(located.shards):
            positions = order[cuts[i] : cuts[i + 1]]
            if len(positions) == 0:
                continue
            folder = self.root / model_fp / prompt_fp
            try:
                data = open_shard(folder / f"{shard}.npy")
                if out is None:
                    out = np.empty((len(texts), data.shape[1]), dtype=np.float32)
                gather(data, located.row[positions], out, positions)
            except (ValueError, IndexError) as error:
                drop_shard(folder, shard)
                raise DamagedShardError(f"{error}; dropped, encode its texts again") from error
        return np.empty((0, 0), dtype=np.float32) if out is None else out

    def _locate(self, folder: Path, keys: np.ndarray) -> Located:
        files = key_files(folder)
        space = self._spaces.get(folder)
        if space is None or space.files != files:
            space = self._spaces[folder] = read_space(folder, files)
        number, row = space.locate(keys)
        return Located(number, row, space.shards)

    def _width(self, folder: Path, located: Located) -> int:
        """Width of the vectors that are stored; 0 where the first shard cannot be read."""
        try:
            return int(open_shard(folder / f"{located.shards[0]}.npy").shape[1])
        except ValueError:
            return 0


def drop_shard(folder: Path, shard: str) -> None:
    """Remove a shard; its keys go first, so that no reader looks for a missing file."""
    drop_keys(folder, shard)
    (folder / f"{shard}.npy").unlink(missing_ok=True)
