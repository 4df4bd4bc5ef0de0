"""Vectors by content: a text is encoded once per model, prompt and token cap.

Layout: `<root>/<model_fp>/<prompt_fp>/<shard>.npy`, float32, named by the hash of its content,
and `<root>/index.duckdb` with one row per stored text. Shards are written whole before the
index names them, so a crash in between costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from filelock import FileLock

from mteblite.vectors.shards import Shard, gather, open_shard, write_shard

# Extensions would be fetched from the network; the storage version is readable by duckdb 1.5.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "storage_compatibility_version": "v1.5.0",
}
_TABLES = """
CREATE TABLE IF NOT EXISTS embedding_index (
    model_fp VARCHAR, prompt_fp VARCHAR, text_hash VARCHAR, shard VARCHAR, row INTEGER, dim INTEGER
);
CREATE TABLE IF NOT EXISTS shards (
    model_fp VARCHAR, prompt_fp VARCHAR, shard VARCHAR, dim INTEGER, bytes BIGINT, mtime_ns BIGINT
);
"""
_SHARDS = """
SELECT shard, dim, bytes, mtime_ns FROM shards WHERE model_fp = ? AND prompt_fp = ? ORDER BY shard
"""
_HITS = """
SELECT w.position, n.number, i.row
FROM wanted w
JOIN embedding_index i ON i.text_hash = w.text_hash
JOIN numbered n ON n.shard = i.shard
WHERE i.model_fp = ? AND i.prompt_fp = ?
"""
# Another process may have stored some of the texts since they were found missing.
_INSERT = """
INSERT INTO embedding_index
SELECT ?, ?, w.text_hash, ?, w.row, ? FROM wanted w
WHERE NOT EXISTS (
    SELECT 1 FROM embedding_index i
    WHERE i.model_fp = ? AND i.prompt_fp = ? AND i.text_hash = w.text_hash
)
"""
_STATS = """
SELECT
    (SELECT count(DISTINCT model_fp) FROM embedding_index) AS models,
    (SELECT count(*) FROM embedding_index) AS vectors,
    (SELECT count(*) FROM shards) AS shards,
    (SELECT coalesce(sum(bytes), 0)::BIGINT FROM shards) AS bytes
"""


class DamagedShardError(ValueError):
    """A shard could not be read; it is out of the index, so its texts count as missing again."""


@dataclass(frozen=True)
class Located:
    """Where texts lie: shard number (-1 = not stored) and row per text, and the shards."""

    number: np.ndarray
    row: np.ndarray
    shards: list[Shard]

    @property
    def absent(self) -> np.ndarray:
        """Positions (ascending) of the texts that are not stored."""
        return np.flatnonzero(self.number < 0)


class VectorStore:
    """Content-addressed vectors on disk with their index in DuckDB."""

    def __init__(self, root: Path, lock_timeout: float = 300.0) -> None:
        """Open a store; nothing is read or written yet.

        Args:
            root: its folder, made on first use.
            lock_timeout: seconds to wait for another process to let go of the index.
        """
        self.root = root
        self.lock_timeout = lock_timeout

    def missing(self, model_fp: str, prompt_fp: str, texts: Sequence[str]) -> np.ndarray:
        """Return the positions (ascending) of the texts that are not stored."""
        return self.locate(model_fp, prompt_fp, texts).absent

    def locate(self, model_fp: str, prompt_fp: str, texts: Sequence[str]) -> Located:
        """Return where texts lie now; hand it to `get` to look them up once instead of twice."""
        return self._locate(model_fp, prompt_fp, text_hashes(texts))

    def put(self, model_fp: str, prompt_fp: str, texts: Sequence[str], vectors: np.ndarray) -> int:
        """Store the vectors of texts; texts already stored keep what they have.

        Args:
            model_fp: the checkpoint's fingerprint.
            prompt_fp: fingerprint of prompt, token cap and whatever else changes a vector.
            texts: n texts; of repeated ones the first counts.
            vectors: (n, dim) finite floats.

        Returns:
            How many texts were new.

        Raises:
            ValueError: the shape does not fit, a value is not finite, or the width differs from
                what is stored at this address.
        """
        array = _checked(texts, vectors)
        hashes = np.array(text_hashes(texts))
        located = self._locate(model_fp, prompt_fp, hashes.tolist())
        if located.shards and located.shards[0].dim != array.shape[1]:
            raise ValueError(
                f"vectors of width {array.shape[1]} for model {model_fp}, prompt {prompt_fp}, "
                f"where width {located.shards[0].dim} is stored: the model changed but not its "
                "identity"
            )
        new = located.absent
        new = new[np.sort(np.unique(hashes[new], return_index=True)[1])]
        if len(new) == 0:
            return 0
        shard = write_shard(self.root / model_fp / prompt_fp, np.ascontiguousarray(array[new]))
        wanted = pa.table({"text_hash": hashes[new], "row": np.arange(len(new), dtype=np.int32)})
        space = [model_fp, prompt_fp]
        with self._index() as con:
            con.register("wanted", wanted)
            con.execute("BEGIN")
            con.execute(_INSERT, [*space, shard.name, shard.dim, *space])
            # Equal vectors of other texts make the same file; only its time is new.
            _delete(con, "shards", model_fp, prompt_fp, shard.name)
            con.execute("INSERT INTO shards VALUES (?, ?, ?, ?, ?, ?)", [*space, *shard])
            con.execute("COMMIT")
        return len(new)

    def get(
        self, model_fp: str, prompt_fp: str, texts: Sequence[str], located: Located | None = None
    ) -> np.ndarray:
        """Return the stored vectors, (n, dim) float32, in the order of the texts.

        Args:
            model_fp: the checkpoint's fingerprint.
            prompt_fp: fingerprint of prompt, token cap and whatever else changes a vector.
            texts: any number, repeats allowed.
            located: what `locate` said of these texts a moment ago; None = look them up.

        Raises:
            KeyError: some texts are not stored; says how many.
            DamagedShardError: a shard is damaged; it is named and dropped, encode again.
        """
        if located is None:
            located = self.locate(model_fp, prompt_fp, texts)
        absent = located.absent
        if len(absent):
            raise KeyError(
                f"{len(absent)} of {len(texts)} texts are not stored for model {model_fp}, prompt "
                f"{prompt_fp}; the first is {texts[absent[0]][:80]!r}: encode them first"
            )
        if len(texts) == 0:
            return np.empty((0, 0), dtype=np.float32)
        out = np.empty((len(texts), located.shards[0].dim), dtype=np.float32)
        order = np.argsort(located.number, kind="stable")
        cuts = np.searchsorted(located.number[order], np.arange(len(located.shards) + 1))
        for i, shard in enumerate(located.shards):
            positions = order[cuts[i] : cuts[i + 1]]
            if len(positions) == 0:
                continue
            path = self.root / model_fp / prompt_fp / f"{shard.name}.npy"
            try:
                gather(open_shard(path, shard), located.row[positions], out, positions)
            except (ValueError, IndexError) as error:
                self._drop(model_fp, prompt_fp, shard.name)
                raise DamagedShardError(f"{error}; dropped, encode its texts again") from error
        return out

    def stats(self) -> dict[str, int]:
        """Return what the store holds: models, vectors, shards, bytes."""
        with self._index() as con:
            row = con.execute(_STATS).fetchall()[0]
        return dict(zip(("models", "vectors", "shards", "bytes"), map(int, row), strict=True))

    def _locate(self, model_fp: str, prompt_fp: str, hashes: Sequence[str]) -> Located:
        number = np.full(len(hashes), -1, dtype=np.int64)
        row = np.zeros(len(hashes), dtype=np.int64)
        if not (self.root / model_fp / prompt_fp).is_dir():
            return Located(number, row, [])
        with self._index() as con:
            shards = [Shard(*r) for r in con.execute(_SHARDS, [model_fp, prompt_fp]).fetchall()]
            names = pa.array([s.name for s in shards], pa.string())
            con.register("numbered", pa.table({"shard": names, "number": np.arange(len(shards))}))
            texts = {"text_hash": pa.array(hashes, pa.string()), "position": np.arange(len(row))}
            con.register("wanted", pa.table(texts))
            hits = con.execute(_HITS, [model_fp, prompt_fp]).fetchnumpy()
        positions = np.asarray(hits["position"], dtype=np.int64)
        number[positions], row[positions] = hits["number"], hits["row"]
        return Located(number, row, shards)

    def _drop(self, model_fp: str, prompt_fp: str, shard: str) -> None:
        """Take a damaged shard out of the index and off the disk."""
        with self._index() as con:
            con.execute("BEGIN")
            for table in ("embedding_index", "shards"):
                _delete(con, table, model_fp, prompt_fp, shard)
            con.execute("COMMIT")
        (self.root / model_fp / prompt_fp / f"{shard}.npy").unlink(missing_ok=True)

    @contextmanager
    def _index(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The index, held for one short transaction; every process waits its turn."""
        self.root.mkdir(parents=True, exist_ok=True)
        # A lock object of its own per use, so that threads of one process wait as well.
        with FileLock(self.root / "index.lock", timeout=self.lock_timeout):
            con = _connect(self.root / "index.duckdb", self.lock_timeout)
            try:
                con.execute(_TABLES)
                yield con
            finally:
                con.close()


def text_hashes(texts: Sequence[str]) -> list[str]:
    """Return the address of each text: 32 hex digits of its SHA-256 (UTF-8)."""
    # Lone surrogates occur in scraped text and have no UTF-8 form.
    return [hashlib.sha256(t.encode("utf-8", "surrogatepass")).hexdigest()[:32] for t in texts]


def _checked(texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim != 2 or len(array) != len(texts) or array.shape[1] == 0:
        raise ValueError(
            f"got vectors of shape {array.shape} for {len(texts)} texts; expected one row per text"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{len(bad)} of {len(texts)} vectors hold NaN or infinite values; "
            f"the first is of {texts[bad[0]][:80]!r}"
        )
    return array


def _delete(
    con: duckdb.DuckDBPyConnection, table: str, model_fp: str, prompt_fp: str, shard: str
) -> None:
    where = "model_fp = ? AND prompt_fp = ? AND shard = ?"
    con.execute(f"DELETE FROM {table} WHERE {where}", [model_fp, prompt_fp, shard])


def _connect(path: Path, timeout: float) -> duckdb.DuckDBPyConnection:
    """Open the index; whoever reads it past our lock (a SQL shell) lets go after a moment."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return duckdb.connect(str(path), config=_CONFIG)
        except duckdb.IOException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
