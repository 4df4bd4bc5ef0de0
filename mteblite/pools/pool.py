"""The pool of one task: candidate items, their texts, and the tables that connect both."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

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

        The pool's hash is the name of the folder, so an existing folder already holds this pool.
        """
        if (folder / "meta.json").exists():
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".pool-"))
        try:
            (scratch / "meta.json").write_text(json.dumps(self.meta, sort_keys=True, indent=1))
            self.texts.to_parquet(scratch / "texts.parquet", index=False)
            self.items.to_parquet(scratch / "items.parquet", index=False)
            for name, frame in self.frames.items():
                frame.to_parquet(scratch / f"frame-{name}.parquet", index=False)
            scratch.replace(folder)
        except OSError:
            # Another process may have written the same pool in the meantime.
            if not (folder / "meta.json").exists():
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path) -> Pool:
        """Read a pool that `save` wrote.

        Raises:
            FileNotFoundError: the folder holds no pool.
        """
        if not (folder / "meta.json").exists():
            raise FileNotFoundError(f"no pool at {folder}: materialize the pools stage first")
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
