"""SELECTION.md: the selected items of a release, their pools, the models, and the errors.

Its six sections are those of the published description of MTEB-lite selections: pools, outcomes,
reference models, item models and selection, validation, chosen variants. All values come from the
warehouse, and none depends on the date, so the same suite gives the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mteblite.releases.markdown import fractions, points, table
from mteblite.releases.released_task import ReleasedTask
from mteblite.releases.selection_sections import family_lines, validation_section
from mteblite.task_types.pool_rules import pool_rules
from mteblite.task_types.registry import find_type


@dataclass(frozen=True)
class SelectionFacts:
    """The content of SELECTION.md.

    Attributes:
        description: the description in the suite's file.
        variant: `<selection>/<estimator>/<set selection>`.
        max_tokens: cap on the tokens of a text.
        caps: the pool's caps by name, None = no cap.
        sources: sources of full scores, in order.
        created_from: data version of the lite suite.
        versions: versions of the programs.
        suite_tasks: rows of `suites.suite_tasks`.
        pool_stats: rows of `pools.shared_pool_stats` with their task.
        kept_models: model, family, kept, n_in_family.
        metrics: rows of `validation.validation_metrics`.
        bootstrap: `bootstrap_intervals` of the variants that section 5 shows.
        intervals: half-widths by target.
    """

    suite: str
    description: str
    variant: str
    max_tokens: int | None
    caps: dict[str, Any]
    sources: Sequence[str]
    created_from: str
    versions: dict[str, str]
    tasks: Sequence[ReleasedTask]
    suite_tasks: pd.DataFrame
    pool_stats: pd.DataFrame
    kept_models: pd.DataFrame
    metrics: pd.DataFrame
    bootstrap: pd.DataFrame
    intervals: pd.DataFrame


def selection_document(facts: SelectionFacts) -> str:
    """Return the text of SELECTION.md."""
    sections = [
        _head(facts),
        _pools(facts),
        _outcomes(facts),
        _reference_models(facts),
        _item_models(facts),
        validation_section(facts.variant, facts.metrics, facts.bootstrap, facts.intervals),
        _chosen(facts),
    ]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _head(facts: SelectionFacts) -> str:
    items = sum(len(t.fitted.selection) for t in facts.tasks)
    made_with = ", ".join(f"{name} {version}" for name, version in sorted(facts.versions.items()))
    return "\n\n".join(
        part
        for part in (
            f"# Selection of the lite suite `{facts.suite}`",
            facts.description.strip(),
            f"{items} items of {len(facts.tasks)} tasks predict the full scores. Made with "
            f"{made_with} from version `{facts.created_from}` of the lite suite.",
        )
        if part
    )


def _pools(facts: SelectionFacts) -> str:
    stats = facts.pool_stats.set_index("task")
    asked = facts.suite_tasks.set_index("task")
    rows = [
        {
            "task": t.task,
            "type": t.description.task_type,
            "metric": t.description.main_metric,
            "split": ", ".join(t.description.splits),
            "subsets": ", ".join(t.description.hf_subsets),
            "pool": int(stats["n_items"].get(t.task, len(t.fitted.items))),
            "of": int(stats["n_available"].get(t.task, -1)),
            "texts": int(stats["n_texts"].get(t.task, -1)),
            "relevant documents dropped": int(stats["n_dropped_relevant"].get(t.task, 0)),
            "data revision": t.description.dataset_revision or "-",
        }
        for t in facts.tasks
    ]
    left_out = sorted(set(asked.index) - {t.task for t in facts.tasks})
    parts = [
        "## 1. Candidate pools",
        pool_rules(facts.caps, facts.max_tokens),
        table(rows),
        f"Without a selection, and so not part of this release: {', '.join(left_out)}."
        if left_out
        else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _outcomes(facts: SelectionFacts) -> str:
    types = sorted({t.description.task_type for t in facts.tasks})
    rows = [{"type": kind, "outcome of one item": find_type(kind).outcome} for kind in types]
    return "\n\n".join(["## 2. Per-item outcomes (one model, one item)", table(rows)])


def _reference_models(facts: SelectionFacts) -> str:
    kept = facts.kept_models
    n_kept, families = int(kept["kept"].sum()), kept.loc[kept["kept"], "family"].nunique()
    counts = {t.task: int(t.fitted.calibration.n_models) for t in facts.tasks}
    fewest = min(counts.values(), default=0)
    partial = [f"{task} ({n})" for task, n in sorted(counts.items()) if n < n_kept]
    lines = [
        "## 3. Reference models and full scores",
        "At most three models of a family are kept: best, median and worst by full score. Full "
        f"scores come from {', then '.join(facts.sources) or 'nowhere'}; a model enters a task "
        "only where it has one.",
        f"**{facts.suite}: {n_kept} models, {families} families** (of {len(kept)} models)",
        "\n".join(family_lines(kept)),
    ]
    if partial:
        lines.append(f"Tasks with fewer models (at least {fewest}): {', '.join(partial)}.")
    return "\n\n".join(lines)


def _item_models(facts: SelectionFacts) -> str:
    rows = []
    for t in facts.tasks:
        fitted, parameters = t.fitted, t.fitted.item_parameters
        rows.append(
            {
                "task": t.task,
                "items": len(fitted.selection),
                "selection": str(fitted.selection["method"].iloc[0]),
                "item model": str(parameters["response_model"].iloc[0]),
                "negative slopes": int((parameters["slope"] < 0).sum()),
                "estimator": fitted.estimator,
                "calibration": fitted.calibration_method,
                "slope": fractions(fitted.calibration.slope),
                "intercept": fractions(fitted.calibration.intercept),
                "residual (points)": points(fitted.calibration.residual_sd),
                "full scores of reference models (points)": f"{points(fitted.reference_low)} to "
                f"{points(fitted.reference_high)}",
            }
        )
    text = (
        "The ability of a model is its full score of the task, standardised over the kept models. "
        "Items respond to it by a linear-Gaussian factor model (`linear_gaussian`) or, where "
        "outcomes are 0 or 1, by a two-parameter logistic model (`two_pl`). The estimate on the "
        "selected items is mapped to the full score by slope and intercept."
    )
    return "\n\n".join(["## 4. Item models, selection and calibration", text, table(rows)])


def _chosen(facts: SelectionFacts) -> str:
    per_item, estimator, set_metric = [*facts.variant.split("/"), "", ""][:3]
    sizes = sorted({len(t.fitted.selection) for t in facts.tasks})
    k = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return "\n\n".join(
        [
            "## 6. Chosen variant",
            f"`{facts.variant}`: per-item tasks {per_item}/{estimator}, set-metric tasks "
            f"{set_metric.split('+')[0]}, K = {k}. A variant chosen by the same folds that judge "
            "it looks a little better than it is; protocols named `nested` in section 5 choose "
            "inside each fold and are free of that.",
        ]
    )
