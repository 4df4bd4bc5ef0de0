"""Writes a folder of result files like the public repository's, from the table of its cells.

Main scores, models, revisions, versions and subsets are real; the other metrics of a cell, which
make up nearly all of a file, are made up, as many as mteb writes for the task's type.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import duckdb

SCORES = Path(__file__).resolve().parents[2] / "shared" / "scores"
NAN_SHARE = 0.16
"""Files of the public repository with a bare NaN in some metric."""

_FILES = """
SELECT file_id, any_value(model_name), any_value(revision), any_value(mteb_version),
    any_value(task_name), any_value(dataset_revision), list(split), list(hf_subset),
    list(main_score)
FROM read_parquet(?) WHERE result_format = 'new' AND experiment IS NULL AND main_score IS NOT NULL
GROUP BY file_id ORDER BY hash(file_id)
"""


def write_results(folder: Path, count: int) -> int:
    """Write result files, round after round of other model names where the table runs out.

    Args:
        folder: gets `results/<model>/<revision>/<task>.json`.
        count: files.

    Returns:
        Bytes written.

    Raises:
        SystemExit: the table is not there.
    """
    if not SCORES.is_dir():
        raise SystemExit(
            f"this benchmark reads official scores from {SCORES}, which does not exist: put "
            "official_scores.parquet and benchmark_tasks.parquet there"
        )
    with duckdb.connect() as connection:
        files = connection.execute(
            _FILES, [str(SCORES / "official_scores.parquet")]
        ).fetchall()  # fmt: skip
        kinds = dict(
            connection.execute(
                "SELECT DISTINCT task_name, type FROM read_parquet(?)",
                [str(SCORES / "benchmark_tasks.parquet")],
            ).fetchall()
        )
    written = 0
    for number in range(count):
        again, place = divmod(number, len(files))
        _, model, revision, version, task, data, splits, subsets, scores = files[place]
        name = model if again == 0 else f"{model}-copy{again}"
        home = folder / "results" / name.replace("/", "__").replace(" ", "_") / revision
        if not home.exists():
            home.mkdir(parents=True)
            meta = {"name": name, "revision": revision}
            (home / "model_meta.json").write_text(json.dumps(meta))
        kind = kinds.get(task, "Retrieval" if "Retrieval" in task else "Classification")
        nan = number % 100 < 100 * NAN_SHARE
        cells: dict[str, list[str]] = {}
        for split, subset, score in zip(splits, subsets, scores, strict=True):
            cells.setdefault(split, []).append(_cell(kind, nan, subset, score))
        body = ",".join(f'"{split}": [{",".join(texts)}]' for split, texts in cells.items())
        text = (
            f'{{\n  "dataset_revision": {json.dumps(data)},\n  "task_name": "{task}",\n'
            f'  "mteb_version": {json.dumps(version)},\n  "scores": {{{body}}},\n'
            '  "evaluation_time": 12.5,\n  "kg_co2_emissions": null\n}'
        )
        written += (home / f"{task}.json").write_text(text)
    return written


def _cell(kind: str, nan: bool, subset: str, score: float) -> str:
    return (
        f'{_other_metrics(kind, nan)},\n        "main_score": {score},\n'
        f'        "hf_subset": "{subset}",\n        "languages": ["eng-Latn"]}}'
    )


_MADE: dict[tuple[str, bool], str] = {}


def _other_metrics(kind: str, nan: bool) -> str:
    if (kind, nan) not in _MADE:
        draw = random.Random(f"{kind}{nan}")
        lines = [f'        "{name}": {draw.random():.5f}' for name in _names(kind)]
        if nan:
            lines[-1] = lines[-1].rpartition(":")[0] + ": NaN"
        _MADE[kind, nan] = "{\n" + ",\n".join(lines)
    return _MADE[kind, nan]


def _names(kind: str) -> list[str]:
    """Names of the metrics that mteb writes beside the main score."""
    if kind in ("Retrieval", "Reranking", "InstructionRetrieval", "InstructionReranking"):
        at = [f"{m}_at_{k}" for m in ("ndcg", "map", "recall", "precision", "mrr")
              for k in (1, 3, 5, 10, 20, 100, 1000)]  # fmt: skip
        return [*at, *(f"nauc_{m}_{s}" for m in at for s in ("max", "std", "diff1"))]
    if kind in ("PairClassification",):
        sides = ("cosine", "dot", "euclidean", "manhattan", "similarity", "max")
        values = (
            "accuracy",
            "accuracy_threshold",
            "f1",
            "f1_threshold",
            "precision",
            "recall",
            "ap",
        )
        return [f"{side}_{value}" for side in sides for value in values]
    if kind in ("STS", "Summarization"):
        sides = ("cosine", "euclidean", "manhattan", "dot")
        return [
            *(f"{s}_{v}" for s in sides for v in ("pearson", "spearman")),
            "pearson",
            "spearman",
        ]
    if kind == "BitextMining":
        return ["precision", "recall", "f1", "accuracy"]
    return [f"{value}_{n}" for value in ("accuracy", "f1", "f1_weighted", "ap") for n in range(11)]
