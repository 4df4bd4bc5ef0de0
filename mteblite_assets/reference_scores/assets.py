"""Reference scores: the full score of every reference model, and which models are kept."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd

from mteblite_assets.embeddings.assets import model_settings
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.reference_scores.pruning import prune_families

FULL_SCORE_COLUMNS = ["main_score", "source", "revision", "mteb_version", "seconds"]


def _settings(context: SettingsContext) -> Any:
    suites = [
        context.catalog.suite(e.suite)
        for e in context.catalog.entries_of_pool(context.key["pool_task"])
    ]
    orders = sorted({tuple(s.file.reference_scores) for s in suites})
    evidence = context.bench.score_evidence(context.entry, context.model, orders[0])
    return model_settings(context), orders[0], evidence


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["resolved_tasks"],
    tables=["reference_scores.shared_full_scores"],
    code_version="1",
    settings=_settings,
    kinds=("duckdb", "huggingface"),
    checks=[
        Check(
            "scores_are_fractions",
            "A full score lies in [-1, 1]: a fraction or a correlation, never a percentage.",
            "SELECT * FROM reference_scores.shared_full_scores "
            "WHERE NOT isfinite(main_score) OR abs(main_score) > 1",
        )
    ],
)
def full_scores(work: Work) -> Produced:
    """One row per (pool_task, model): the main score of the full task, as mteb computes it.

    Taken from the suite's results sources, first match wins; `run` runs mteb with the stored
    vectors, keeps its result file and reads it back. A model without a score has no row, and
    does not enter the task.
    """
    order = work.catalog.suite(work.entry.suite).file.reference_scores
    return _full_score(work, order)


def _full_score(work: Work, order: list[str]) -> Produced:
    started = time.perf_counter()
    found = work.bench.full_score(work.entry, work.model, work.max_tokens, order, work.progress)
    if found is None:
        rows = pd.DataFrame(columns=FULL_SCORE_COLUMNS)
        return Produced(
            {"reference_scores.shared_full_scores": rows},
            {"score": "none in " + ", ".join(order)},
        )
    row = {
        "main_score": found.main_score,
        "source": found.source,
        "revision": found.revision,
        "mteb_version": found.mteb_version,
        "seconds": time.perf_counter() - started,
    }
    return Produced(
        {"reference_scores.shared_full_scores": pd.DataFrame([row])},
        {"main_score": round(found.main_score, 5), "source": found.source},
    )


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["full_scores"],
    tables=["reference_scores.full_score_vectors"],
    code_version="1",
)
def full_score_vectors(work: Work) -> Produced:
    """One row per (pool_task, model): the full scores of all models of a pool side by side."""
    rows = work.rows("reference_scores.shared_full_scores")[["model", "main_score"]]
    rows = rows.sort_values("model", ignore_index=True)
    facts: dict[str, Any] = {"models": len(rows)}
    if len(rows):
        best = rows.iloc[int(rows["main_score"].argmax())]
        facts |= {
            "best": f"{best['model']} {best['main_score']:.4f}",
            "mean": round(float(rows["main_score"].mean()), 4),
        }
    return Produced({"reference_scores.full_score_vectors": rows}, facts)


@stage_asset(
    grain=Grain.SUITE,
    deps=["suite_tasks", "roster", "full_score_vectors"],
    tables=["reference_scores.kept_models"],
    code_version="1",
    checks=[
        Check(
            "at_most_three_per_family",
            "Near-copies of one parent must not decide which items look informative.",
            "SELECT suite, family, count(*) AS n FROM reference_scores.kept_models "
            "WHERE kept GROUP BY ALL HAVING count(*) > 3",
        )
    ],
)
def kept_models(work: Work) -> Produced:
    """One row per (suite, reference model): kept or pruned, with the score that decided it.

    At most three models of a family enter the fits: best, median and worst by full score.
    """
    members = work.rows("suites.roster")
    tasks = work.rows("suites.suite_tasks")[["task", "pool_task"]]
    scores = work.rows("reference_scores.full_score_vectors").merge(tasks, on="pool_task")
    scores = scores[scores["model"].isin(members["model"])]
    families = dict(zip(members["model"], members["family"], strict=True))
    rows = prune_families(scores[["model", "task", "main_score"]], families)
    kept = rows[rows["kept"]]
    return Produced(
        {"reference_scores.kept_models": rows},
        {
            "kept": len(kept),
            "of": len(rows),
            "families": kept["family"].nunique(),
            "models": ", ".join(kept["model"]),
        },
    )


@stage_asset(
    grain=Grain.SUITE_CANDIDATE,
    deps=["suite_tasks"],
    tables=["reference_scores.candidate_full_scores"],
    code_version="1",
    settings=lambda context: context.bench.identify(context.model).fingerprint,
    on_request=True,
    kinds=("duckdb", "huggingface"),
)
def candidate_full_scores(work: Work) -> Produced:
    """One row per (suite, task, candidate): its full scores, only when somebody asks for them.

    A candidate needs no full run; this one shows how near its prediction was.
    """
    rows = []
    for entry in work.suite.tasks:
        order = list(work.suite.file.reference_scores)
        found = work.bench.full_score(entry, work.model, work.max_tokens, order, work.progress)
        if found is not None:
            rows.append(
                {
                    "task": entry.task,
                    "main_score": found.main_score,
                    "source": found.source,
                    "revision": found.revision,
                    "mteb_version": found.mteb_version,
                }
            )
    table = pd.DataFrame(rows, columns=["task", *FULL_SCORE_COLUMNS[:-1]])
    return Produced({"reference_scores.candidate_full_scores": table}, {"tasks": len(table)})
