"""The pool of one task: candidate items, their texts, and the tables that connect both."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.files import DamagedFileError

ITEM_COLUMNS = ["item_id", "hf_subset", "split", "stratum", "gold", "pool_weight"]


@dataclass(frozen=True)
class Pool:
    """Candidate items of one task with everything needed to score a model on them.

    Attributes:
        meta: JSON-able facts: `task`, `task_type`, `main_metric`, `splits`, `hf_subsets`,
            `protocol` (mteb's settings), `n_available` (items before the caps),
            `n_dropped_relevant`, and further facts for the type's scorer.
        texts: one row per distinct (text, prompt_type); columns `text` (str) and `prompt_type`
            (`query`, `document` or ""). Row number = the text's position in `vectors`.
        items: columns ITEM_COLUMNS, sorted by item_id, unique; `pool_weight` sums to 1 and gives
            each cell (split, subset) the same mass; `gold` is NaN where the type has no number.
        frames: further tables of the type (candidate lists, train rows, pairs ...), whose
            integer columns ending in `_row` point into `texts` and whose `item_id` columns
            point into `items`.
    """

    meta: dict[str, Any]
    texts: pd.DataFrame
    items: pd.DataFrame
    frames: dict[str, pd.DataFrame]

    @property
    def task_type(self) -> str:
        """Mteb's task type."""
        return str(self.meta["task_type"])

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics asked for, the main one first."""
        return list(dict.fromkeys([str(self.meta["main_metric"]), *self.meta.get("metrics", [])]))

    def pool_hash(self) -> str:
        """Return a content hash (16 hex digits), equal for equal pools on every machine."""
        digest = hashlib.sha256(json.dumps(self.meta, sort_keys=True).encode())
        for name, frame in [
            ("texts", self.texts),
            ("items", self.items),
            *sorted(self.frames.items()),
        ]:
            digest.update(name.encode())
            digest.update(",".join(map(str, frame.columns)).encode())
            digest.update(
                pd.util.hash_pandas_object(_hashable(frame), index=False).to_numpy().tobytes()
            )
        return digest.hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """Write the pool as Parquet and JSON files; the folder is complete or does not exist.

        The pool's hash is the name of the folder. A folder that holds this pool stays, and one
        whose files were changed is replaced.
        """
        if folder.exists() and _holds(folder):
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".pool-"))
        try:
            new = scratch / "new"
            new.mkdir()
            (new / "meta.json").write_text(json.dumps(self.meta, sort_keys=True, indent=1))
            self.texts.to_parquet(new / "texts.parquet", index=False)
            self.items.to_parquet(new / "items.parquet", index=False)
            for name, frame in self.frames.items():
                frame.to_parquet(new / f"frame-{name}.parquet", index=False)
            if folder.exists():
                folder.replace(scratch / "damaged")
            new.replace(folder)
        except OSError:
            # Another process may have written the same pool in the meantime.
            if not folder.exists() or not _holds(folder):
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path, *, verified: bool = False) -> Pool:
        """Read a pool that `save` wrote.

        Args:
            folder: its folder.
            verified: whether the folder is named by the hash of the pool, and must hold it.

        Raises:
            DamagedFileError: the folder holds no pool, or not the one that it is named by.
        """
        try:
            pool = cls._read(folder)
            if not verified or pool.pool_hash() == folder.name:
                return pool
            problem = "it does not hold what was written"
        except (OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
            # Other errors of the system (too many open files, no permission) are no damage.
            if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
                raise
            problem = str(error)
        raise DamagedFileError(f"pool {folder} cannot be used: {problem}")

    @classmethod
    def _read(cls, folder: Path) -> Pool:
        frames = {
            path.stem.removeprefix("frame-"): pd.read_parquet(path)
            for path in sorted(folder.glob("frame-*.parquet"))
        }
        return cls(
            meta=json.loads((folder / "meta.json").read_text()),
            texts=pd.read_parquet(folder / "texts.parquet"),
            items=pd.read_parquet(folder / "items.parquet"),
            frames=frames,
        )


def _holds(folder: Path) -> bool:
    """Whether a folder holds the pool that it is named by."""
    try:
        Pool.load(folder, verified=True)
    except DamagedFileError:
        return False
    return True


def row_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame that point into a pool's texts."""
    return [str(column) for column in frame.columns if str(column).endswith("_row")]


def _hashable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with list-valued columns as text, because pandas cannot hash lists."""
    lists = [c for c in frame.columns if frame[c].map(_is_list).any()]
    return frame.assign(
        **{c: frame[c].map(lambda v: json.dumps(list(v), default=str)) for c in lists}
    )


def _is_list(value: Any) -> bool:
    array = hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0
    return array or isinstance(value, list | tuple)
