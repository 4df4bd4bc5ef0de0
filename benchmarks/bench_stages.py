"""Pool and outcomes of a task, against `mteb.evaluate` on the same texts and the same vectors.

Both start from the same kind of mteb task object with its data loaded and the same store with
every vector in it (`StoredEncoder` is the model in both). The product's time is that of the first
model: reading the task into frames, drawing the pool, reading the vectors, and scoring; for every
further model the pool is there already ("next model").

With every cap off the texts are mteb's own. The rows with caps are what a suite does by default.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import REPOSITORY, arguments, report

TASKS = (
    ("STSBenchmark", None, None),
    ("STS17", None, ["ar-ar", "en-ar", "en-en", "es-es"]),
    ("RestaurantReviewSentimentClassification.v2", None, None),
    ("AmazonCounterfactualClassification", None, ["en"]),
    ("Banking77Classification", None, None),
    ("XNLI", None, ["ar", "en"]),
    ("TwentyNewsgroupsClustering.v2", None, None),
    ("SIB200ClusteringS2S", None, ["ary_Arab", "eng_Latn"]),
    ("SummEvalSummarization.v2", None, None),
    ("NTREXBitextMining", None, ["arb_Arab-eng_Latn", "eng_Latn-arb_Arab"]),
    ("Tatoeba", None, ["ara-eng", "arz-eng"]),
    ("AskUbuntuDupQuestions", None, None),
    ("SciFact", None, None),
    ("XQuADRetrieval", ["validation"], ["ar", "en"]),
)
CAPPED = ("SciFact", "XQuADRetrieval", "AskUbuntuDupQuestions", "XNLI")


def main() -> None:
    """Time every task with all caps off, and some with the caps of the method."""
    asked = arguments(__doc__ or "", repetitions=3, model="package:wordllama-256", task="")
    with tempfile.TemporaryDirectory(prefix="mteblite-bench-") as folder:
        hub = _hub(Path(folder) / "hf")
        hub.start()
        try:
            tasks = [t for t in TASKS if not asked.task or t[0] in asked.task.split(",")]
            rows = []
            for task in tasks:
                found = _rows(task, asked, Path(folder))
                rows += found
                print(*found, sep="\n", file=sys.stderr)
        finally:
            hub.stop()
    report("pool + outcomes / mteb.evaluate", rows, as_json=asked.json)


def _rows(task: Any, asked: Any, folder: Path) -> list[dict[str, Any]]:
    from mteblite.suites.pool_settings import PoolSettings
    from mteblite.tasks.mteb_tasks import MtebTasks

    source = MtebTasks()
    description = source.describe(*task)
    encoder = _encoder(asked.model, folder)
    whole = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
    kinds = {"no caps": whole} | ({"caps": PoolSettings()} if task[0] in CAPPED else {})
    rows = []
    for kind, settings in kinds.items():
        _product(source, description, encoder, settings)  # encodes what is missing, warms up
        _mteb(source, description, encoder)
        own, official = [], []
        for _ in range(asked.repetitions):
            own.append(_product(source, description, encoder, settings))
            official.append(_mteb(source, description, encoder))
        score, pool_score = official[0][1], own[0][1]
        ratios = [sum(o[0].values()) / e[0] for o, e in zip(own, official, strict=True)]
        parts = {k: statistics.median(o[0][k] for o in own) for k in own[0][0]}
        again = [
            (o[0]["vectors"] + o[0]["score"]) / e[0] for o, e in zip(own, official, strict=True)
        ]
        rows.append(
            {
                "task": description.task, "type": description.task_type, "pool": kind,
                "mteb s": statistics.median(e[0] for e in official), **parts,
                "ratio": statistics.median(ratios), "next model": statistics.median(again),
                "same score": abs(score - pool_score) < 1e-6 if kind == "no caps" else "",
            }
        )  # fmt: skip
    return rows


def _product(source: Any, description: Any, encoder: Any, settings: Any) -> Any:
    import numpy as np

    from mteblite.task_types.drawing import draw_pool
    from mteblite.task_types.scoring import score_pool
    from mteblite.tasks.task_cells import task_data

    task = source.loaded_task(description)
    times = [time.perf_counter()]
    data = task_data(task, description)
    times.append(time.perf_counter())
    pool = draw_pool(data, settings)
    times.append(time.perf_counter())
    kinds = pool.texts["prompt_type"].to_numpy(str)
    texts = pool.texts["text"].to_numpy(object)
    vectors = np.empty((len(texts), 0), np.float32)
    for kind in sorted(set(kinds)):
        rows = np.flatnonzero(kinds == kind)
        found = encoder.vectors(list(texts[rows]), task.metadata, kind)
        if vectors.shape[1] == 0:
            vectors = np.empty((len(texts), found.shape[1]), np.float32)
        vectors[rows] = found
    times.append(time.perf_counter())
    score = score_pool(pool, vectors).pool_score
    times.append(time.perf_counter())
    names = ("read", "draw", "vectors", "score")
    return dict(zip(names, np.diff(times).tolist(), strict=True)), score


def _mteb(source: Any, description: Any, encoder: Any) -> tuple[float, float]:
    import mteb

    task = source.loaded_task(description)
    started = time.perf_counter()
    found = mteb.evaluate(encoder, task, cache=None, show_progress_bar=False)
    seconds = time.perf_counter() - started
    return seconds, found.task_results[0].get_score()


_ENCODERS: dict[str, Any] = {}


def _encoder(model: str, folder: Path) -> Any:
    from mteblite.models.encoders import open_encoder
    from mteblite.models.model_identity import identify
    from mteblite.suites.suite_model import SuiteModel
    from mteblite.vectors.store import VectorStore

    if model not in _ENCODERS:
        spec = SuiteModel.named(model, "benchmark")
        store, home = VectorStore(folder / "vectors"), folder / "cache"
        _ENCODERS[model] = open_encoder(spec, identify(spec, home), store, home=home, keep=[])
    return _ENCODERS[model]


def _hub(cache: Path) -> Any:
    """The hub stand-in of the tests; the environment must be set before mteb is imported."""
    path = REPOSITORY / "tests" / "support" / "hub.py"
    spec = importlib.util.spec_from_file_location("benchmark_hub", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not module.HUB_DATA.is_dir():
        raise SystemExit(module.ABSENT)
    port = module.free_port()
    os.environ |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HOME": str(cache),
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    return module.HubStandIn(port, cache)


if __name__ == "__main__":
    main()
