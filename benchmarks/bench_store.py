"""The vector store: writing and reading, against encoding time; 200,000 x 384 back for a task.

Encoding time is that of MiniLM-L6 over texts of the same kind in the same process. Reading is
timed with a new store object, files in the page cache, as in a run that comes after the encoding.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measuring import arguments, interleaved, report, resident_mib

FLUSH = 32768  # texts that the encoder hands to the store at once, at most


def main() -> None:
    """Write, read back whole and in part, and compare with the time of encoding."""
    asked = arguments(__doc__ or "", texts=200_000, dim=384, encoded=400, repetitions=5, threads=2)
    import torch

    torch.set_num_threads(asked.threads)
    with tempfile.TemporaryDirectory(prefix="mteblite-bench-") as folder:
        rows = _store(asked, Path(folder))
    report("vector store", rows, as_json=asked.json)


def _store(asked: Any, root: Path) -> list[dict[str, Any]]:
    import numpy as np

    from mteblite.vectors.store import VectorStore

    texts = [
        f"text number {i} of a corpus, about as long as a sentence is" for i in range(asked.texts)
    ]
    vectors = np.random.default_rng(0).normal(size=(asked.texts, asked.dim)).astype(np.float32)
    started, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(texts), FLUSH):
        block = slice(start, start + FLUSH)
        located = VectorStore(root).locate("model", "prompt", texts[block])
        assert len(located.absent) == len(texts[block])
        VectorStore(root).put("model", "prompt", texts[block], vectors[block])
    write, write_cpu = time.perf_counter() - started, time.process_time() - cpu
    shuffled = [texts[i] for i in np.random.default_rng(1).permutation(len(texts))]
    few = shuffled[: len(texts) // 100]

    def read(wanted: list[str]) -> Any:
        store = VectorStore(root)
        return store.get("model", "prompt", wanted, store.locate("model", "prompt", wanted))

    runs = {
        "read all": lambda: read(texts),
        "read all, shuffled": lambda: read(shuffled),
        "read 1 %": lambda: read(few),
    }
    for run in runs.values():
        run()
    taken = interleaved(runs, asked.repetitions)
    with _peak() as peak:
        found = read(texts)
    assert np.array_equal(found, vectors)
    encoding = _encoding_seconds(asked.encoded) * asked.texts
    rows = [_row("write all", asked.texts, write, write_cpu, encoding)]
    for name, t in taken.items():
        number = len(few) if "1 %" in name else asked.texts
        share = encoding * number / asked.texts
        rows.append(_row(name, number, min(t.wall), min(t.cpu), share))
    size = vectors.nbytes / 2**20
    rows.append({"what": f"memory that reading takes beside the {size:.0f} MiB returned",
                 "MiB": max(0.0, peak[0] - size)})  # fmt: skip
    return rows


def _row(what: str, number: int, wall: float, cpu: float, encoding: float) -> dict[str, Any]:
    return {
        "what": what, "texts": number, "seconds": wall, "CPU seconds": cpu,
        "share of MiniLM's encoding time": wall / encoding,
    }  # fmt: skip


def _encoding_seconds(number: int) -> float:
    """Seconds per text of MiniLM-L6 on short texts: the fastest it goes here."""
    from bench_encoding import minilm
    from bench_texts import short_texts

    texts = short_texts(number)
    model = minilm()
    model.encode(texts, show_progress_bar=False)
    taken = interleaved({"encode": lambda: model.encode(texts, show_progress_bar=False)}, 3)
    return min(taken["encode"].wall) / len(texts)


@contextmanager
def _peak() -> Iterator[list[float]]:
    """The most anonymous memory that the block had more than there was before, in MiB."""
    before, peak, done = resident_mib(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], resident_mib() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


if __name__ == "__main__":
    main()
