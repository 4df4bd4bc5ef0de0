"""Reading official results into the warehouse / mteb's ResultCache.load_results, same files.

    python benchmarks/bench_results.py --files 10000
    python benchmarks/bench_results.py --files 100000 --mteb-files 5000

Ours: listing, parsing in processes, writing to DuckDB, the pick of revisions, the quarantine.
mteb's: `load_results` alone. With `--mteb-files` mteb reads that many of the files and its time is
scaled up. Neither side's import of mteb counts. Files are in the page cache for both.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import arguments, report

from mteblite_assets.reference_scores.assets import official_results
from mteblite_resources.declared_tables import DeclaredTables
from mteblite_resources.mteb_registry import registry_facts
from mteblite_resources.official_results import OfficialResults
from mteblite_resources.warehouse import Warehouse


def main() -> None:
    chosen = arguments(__doc__ or "", files=10_000, mteb_files=0)
    folder = Path(tempfile.mkdtemp(prefix="mteblite-bench-"))
    try:
        from result_files import write_results

        size = write_results(folder, chosen.files)
        sample = min(chosen.mteb_files or chosen.files, chosen.files)
        row = measure(folder, chosen.files, sample)
        title = f"Official results: {chosen.files} files, {size / 2**20:.0f} MiB"
        report(title, [row], as_json=chosen.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, n_files: int, n_mteb: int) -> dict[str, Any]:
    """Ours on all files, again with nothing new and with one new file, and mteb's."""
    cache = folder / "cache"
    registry_facts(cache)  # imports mteb once, for both sides
    results = OfficialResults(folder, cache)
    warehouse = Warehouse(folder / "w.duckdb", folder / "s.duckdb")
    written = official_results.self_written
    tables = DeclaredTables(official_results.name, [], written, warehouse)
    results.state()
    ours = _taken(lambda: results.ingest(tables))
    again = _taken(lambda: results.ingest(tables))
    touched = next((folder / "results").glob("*/*/[A-Z]*.json"))
    touched.write_text(touched.read_text() + "\n")
    one = _taken(lambda: results.ingest(tables))
    scale = n_files / n_mteb
    theirs = _taken(lambda: _mteb(folder, n_mteb))
    scaled = " (scaled)" if scale > 1 else ""
    return {
        "files": n_files, "clock s": ours[0], "CPU s": ours[1],
        "nothing new, CPU s": again[1], "one changed, CPU s": one[1], "mteb read": n_mteb,
        f"mteb clock s{scaled}": theirs[0] * scale, f"mteb CPU s{scaled}": theirs[1] * scale,
        "ratio, clock": theirs[0] * scale / ours[0], "ratio, CPU": theirs[1] * scale / ours[1],
    }  # fmt: skip


def _mteb(folder: Path, count: int) -> None:
    """mteb's own loading; of a part of the files through a folder of links."""
    import mteb

    root = folder
    paths = sorted((folder / "results").glob("*/*/*.json"))
    if count < len(paths):
        root = folder / "part"
        chosen = [p for p in paths if p.name != "model_meta.json"]
        for path in chosen[:: max(1, len(chosen) // count)][:count]:
            link = root / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    found = mteb.ResultCache(root).load_results(require_model_meta=False, include_remote=False)
    n = sum(len(m.task_results) for m in found.model_results)
    if n < 0.95 * count:
        sys.exit(f"mteb read {n} of {count} files")


def _taken(work: Any) -> tuple[float, float]:
    """Seconds of the clock and of all cores, child processes included."""
    started, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - started, sum(after[:4]) - sum(before[:4])


if __name__ == "__main__":
    main()
