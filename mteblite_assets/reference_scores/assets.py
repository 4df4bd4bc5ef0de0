"""Reference scores: the full score of every reference model, and the kept models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from mteblite.reference_scores.pruning import prune_families
from mteblite.reference_scores.public_models import COLUMNS as SCORE_COLUMNS
from mteblite.suites.catalog import TaskEntry
from mteblite.suites.task_types import task_types
from mteblite_assets.embeddings.assets import model_settings
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_resources.official_results import official_scores
from mteblite_resources.results_source import QuarantinedScore

FULL_SCORE_COLUMNS = ["main_score", "source", "revision", "mteb_version", "seconds"]


def _source_settings(context: SettingsContext) -> Any:
    return context.ports.full_scores.sources.official.state(), context.ports.tasks.mteb_version


@stage_asset(
    grain=Grain.SOURCE,
    tables=["reference_scores.result_sources"],
    self_written=[
        "reference_scores.ingested_files",
        "reference_scores.ingested_cells",
        "reference_scores.quarantine",
        "reference_scores.quarantine_rules",
    ],
    code_version="2",
    settings=_source_settings,
    kinds=("duckdb", "json", "parquet"),
    checks=[
        Check(
            "one_file_per_model_and_task",
            "One file of several revisions, uploads and experiments counts.",
            "SELECT model_name, task_name, count(*) AS n FROM reference_scores.ingested_files "
            "WHERE picked GROUP BY ALL HAVING count(*) > 1",
        ),
        Check(
            "refusals_have_reasons",
            "Every score that is refused or taken with a note has a reason.",
            "SELECT * FROM reference_scores.quarantine "
            "WHERE reason = '' OR decision NOT IN ('refused', 'taken')",
        ),
    ],
)
def official_results(work: Work) -> Produced:
    """One row per source: counts and content hash of the official results.

    Reads a mirror of the results repository, or a Parquet table of it, into `ingested_files`,
    `ingested_cells` and `quarantine`. Only new and changed files of a folder are opened. The rule
    of the leaderboard decides which of several files of a (model, task) counts.
    """
    row = work.ports.full_scores.sources.official.ingest(work.tables, work.progress)
    facts = {str(name): str(value) for name, value in row.iloc[0].items() if name != "content"}
    version = f"{row['kind'].iloc[0]} {row['content'].iloc[0]}"
    return Produced({"reference_scores.result_sources": row}, facts, version=version)


def _order(context: SettingsContext) -> tuple[str, ...]:
    """Return the sources by precedence; suites that share the pool have equal ones."""
    return tuple(context.catalog.suite(context.entry.suite).file.reference_scores)


def _uses_official(context: SettingsContext) -> bool:
    return "official" in _order(context)


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["resolved_tasks", "official_results"],
    tables=["reference_scores.public_scores"],
    code_version="1",
    nullable=["main_score"],
    settings=_uses_official,
    checks=[
        Check(
            "public_scores_are_fractions",
            "A score that may be used is a fraction or a correlation.",
            "SELECT * FROM reference_scores.public_scores "
            "WHERE refused = '' AND (NOT isfinite(main_score) OR abs(main_score) > 1)",
        )
    ],
)
def public_scores(work: Work) -> Produced:
    """One row per (pool_task, public model): its official full score, or why it is refused.

    The score is the mean over the splits and subsets of the task, as on mteb's leaderboard. Models
    that lack one of them have no row. Without the source `official` there are no rows.
    """
    rows = pd.DataFrame(columns=SCORE_COLUMNS)
    if _uses_official(work):
        rows = official_scores(work.tables, [work.ports.tasks.describe(work.entry)])
    rows = rows.drop(columns="task")
    refused = rows[rows["refused"] != ""]
    facts: dict[str, Any] = {"models": len(rows) - len(refused), "refused": len(refused)}
    if len(refused):
        facts["reasons"] = refused[["model", "refused"]].head(20).to_markdown(index=False)
    return Produced({"reference_scores.public_scores": rows}, facts)


def _settings(context: SettingsContext) -> Any:
    order = _order(context)
    sources = context.ports.full_scores.sources
    evidence = sources.evidence(context.model.name, context.entry.task, order)
    return model_settings(context), order, evidence


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["resolved_tasks", "public_scores"],
    tables=["reference_scores.shared_full_scores"],
    code_version="2",
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

    It comes from the first source of the suite that has a score. `run` runs mteb on the stored
    vectors and stores its result file. A model without a score, or with an official score in
    quarantine only, has no row and does not enter the task.
    """
    started, order = time.perf_counter(), list(_order(work))
    row, refused = _full_score(work, work.entry, order, work.rows("reference_scores.public_scores"))
    nothing = "" if row else refused or f"no full score in {', '.join(order)}"
    facts: dict[str, Any] = {}
    if row:
        row["seconds"] = time.perf_counter() - started
        facts = {"main_score": round(row["main_score"], 5), "source": row["source"]}
    rows = pd.DataFrame([row] if row else [], columns=FULL_SCORE_COLUMNS)
    return Produced({"reference_scores.shared_full_scores": rows}, facts, nothing=nothing)


def _full_score(
    work: Work, entry: TaskEntry, order: list[str], public: pd.DataFrame
) -> tuple[dict[str, Any], str]:
    """Return a model's full score as a row, else an empty row; and the reason of a refusal."""
    try:
        found = work.ports.full_scores.full_score(
            entry, work.model, work.max_tokens, order, public, work.progress
        )
    except QuarantinedScore as error:
        return {}, str(error)
    return ({} if found is None else asdict(found)), ""


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["full_scores"],
    tables=["reference_scores.full_score_vectors"],
    code_version="1",
)
def full_score_vectors(work: Work) -> Produced:
    """One row per (pool_task, model): the full scores of all models of a pool."""
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
    code_version="2",
    checks=[
        Check(
            "at_most_three_per_family",
            "At most three models of a family enter the fits; others would be near-copies.",
            "SELECT suite, family, count(*) AS n FROM reference_scores.kept_models "
            "WHERE kept GROUP BY ALL HAVING count(*) > 3",
        )
    ],
)
def kept_models(work: Work) -> Produced:
    """One row per (suite, reference model): kept or pruned, with the score that decides it.

    At most three models of a family enter the fits: best, median and worst by full score.
    """
    members = work.rows("suites.roster")
    tasks = work.rows("suites.suite_tasks")[["task", "pool_task"]]
    scores = work.rows("reference_scores.full_score_vectors").merge(tasks, on="pool_task")
    scores = scores[scores["model"].isin(members["model"])]
    families = dict(zip(members["model"], members["family"], strict=True))
    types = task_types(work.rows("suites.suite_tasks"))
    rows = prune_families(scores[["model", "task", "main_score"]], families, task_types=types)
    kept = rows[rows["kept"]]
    facts: dict[str, Any] = {"kept": len(kept), "of": len(rows)}
    facts |= {"families": kept["family"].nunique(), "models": ", ".join(kept["model"])}
    return Produced({"reference_scores.kept_models": rows}, facts)


def with_own_runs(order: Sequence[str]) -> list[str]:
    """Return sources of full scores by precedence, with runs of mteb as the last one."""
    return [*order] if "run" in order else [*order, "run"]


@stage_asset(
    grain=Grain.SUITE_CANDIDATE,
    deps=["suite_tasks"],
    optional={"public_scores": lambda c: "official" in c.suite.file.reference_scores},
    tables=["reference_scores.candidate_full_scores"],
    code_version="2",
    settings=lambda context: context.ports.models.identify(context.model).fingerprint,
    on_request=True,
    kinds=("duckdb", "huggingface"),
)
def candidate_full_scores(work: Work) -> Produced:
    """One row per (suite, task, candidate): its full score, on request.

    A candidate needs no full run; its full score shows the error of its prediction. Whoever asks
    for it wants it made: a run of mteb is the last source, whatever the suite's sources are.
    """
    rows, refused = [], {}
    public = work.rows("reference_scores.public_scores")
    order = with_own_runs(work.suite.file.reference_scores)
    for entry in work.suite.tasks:
        mine = public[public["pool_task"] == entry.pool_task] if len(public) else public
        row, reason = _full_score(work, entry, order, mine)
        if row:
            rows.append({"task": entry.task, **row})
        elif reason:
            refused[entry.task] = reason
    table = pd.DataFrame(rows, columns=["task", *FULL_SCORE_COLUMNS[:-1]])
    facts = {"tasks": len(table), **refused}
    return Produced({"reference_scores.candidate_full_scores": table}, facts)
