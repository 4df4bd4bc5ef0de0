"""Selections: the number of items of each task, and the items."""

from __future__ import annotations

from typing import Any

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import fit_from_tables
from mteblite.selections.sharing import Sharing
from mteblite.selections.token_budget import choose
from mteblite.task_types.registry import task_kind
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of, evidences_of


def _sharing_settings(context: SettingsContext) -> Any:
    suite = context.suite
    seed = suite.file.pool.seed if suite.file.shares_out else None
    counts = {e.task: e.k for e in suite.tasks}
    return counts, suite.file.allocation, suite.file.token_budget, seed


@stage_asset(
    grain=Grain.SUITE,
    deps=[*EVIDENCE, "pool_costs"],
    tables=["selections.allocations"],
    code_version="3",
    settings=_sharing_settings,
    checks=[
        Check(
            "enough_items",
            "Every task gets at least 2 items.",
            "SELECT suite, task, k FROM selections.allocations WHERE k < 2",
        )
    ],
)
def allocations(work: Work) -> Produced:
    """One row per (suite, task): the number of selected items, and the tokens of one.

    The number is the suite's K of the task. With `allocation: budget`, the tokens of all K are
    divided by cost and spread so that the variance of the macro mean is smallest. With
    `allocation: tokens`, `tokens` limits the selection and K is a number of average items.
    """
    file = work.suite.file
    counts = {e.task: e.k for e in work.suite.tasks}
    tasks = work.rows("suites.suite_tasks")
    costs = tasks.merge(work.rows("pools.shared_pool_costs"), on="pool_task", how="left")
    rows = costs[["task", "item_tokens"]].assign(spread=None)
    if file.shares_out:
        sharing = sharing_of(work)
        counts = sharing.counts()
        rows["spread"] = rows["task"].map(sharing.spreads())
    rows["k"] = rows["task"].map(counts)
    tokens = rows["k"] * rows["item_tokens"]
    if file.pays_by_token:
        rows["tokens"] = tokens
    facts = {
        "allocation": file.allocation,
        "tokens": round(float(tokens.sum())),
        "items": ", ".join(f"{t} {k}" for t, k in zip(rows["task"], rows["k"], strict=True)),
    }
    return Produced({"selections.allocations": rows}, facts)


def sharing_of(work: Work) -> Sharing:
    """Return the division of the suite's token budget, from the work's input rows."""
    file = work.suite.file
    costs = work.rows("suites.suite_tasks").merge(
        work.rows("pools.shared_pool_costs"), on="pool_task"
    )
    prices = dict(zip(costs["task"], costs["item_tokens"].astype(float), strict=True))
    evidences, _ = evidences_of(work)
    return Sharing(
        [e for e in evidences if e.task in prices],
        prices,
        {e.task: e.k for e in work.suite.tasks},
        file.pool.seed,
        budget=file.token_budget,
    )


def pays_by_token(context: SettingsContext) -> bool:
    """Return whether the suite selects items for tokens, and needs the tokens of each item."""
    return context.suite.file.pays_by_token


def token_costs_of(work: Work, evidence: TaskEvidence) -> np.ndarray | None:
    """Return the tokens of each pool item of a task (n_items,), None unless all are counted."""
    pools = work.rows("suites.suite_tasks").set_index("task")["pool_task"]
    counted = work.rows("pools.shared_item_costs")
    rows = counted[counted["pool_task"] == pools[evidence.task]].set_index("item_id")["tokens"]
    tokens = rows.reindex(evidence.items["item_id"]).to_numpy(dtype=float)
    return tokens if len(tokens) and np.isfinite(tokens).all() else None


def count_and_costs(work: Work, evidence: TaskEvidence) -> tuple[int, np.ndarray | None]:
    """Return a task's K and, with `allocation: tokens`, the tokens of its items; see `choose`.

    Raises:
        ValueError: `allocation: tokens`, and tokens of some items are not counted.
    """
    k = int(work.rows("selections.allocations").set_index("task")["k"][evidence.task])
    if not pays_by_token(work):
        return k, None
    costs = token_costs_of(work, evidence)
    if costs is None:
        raise ValueError(
            f"{evidence.task}: `allocation: tokens` needs the tokens of every item of its pool, "
            "but some are not counted: run the stage pools again with --force"
        )
    return k, costs


def _settings(context: SettingsContext) -> Any:
    file, description = context.suite.file, context.entry.description
    if description is None:  # an unresolved task cannot run
        return file.per_item.selection, file.set_metric.selection
    per_item = task_kind(description.task_type) == "per_item"
    return (file.per_item if per_item else file.set_metric).selection, file.pool.seed


@stage_asset(
    grain=Grain.SUITE_TASK,
    deps=[*EVIDENCE, "item_parameters", "allocations"],
    optional={"pool_costs": pays_by_token},
    tables=["selections.selected_items"],
    code_version="2",
    settings=_settings,
    checks=[
        Check(
            "weights_sum_to_one",
            "The weights of a selection sum to 1.",
            "SELECT suite, task, sum(weight) AS total FROM selections.selected_items "
            "GROUP BY ALL HAVING abs(sum(weight) - 1) > 1e-9",
        ),
        Check(
            "selected_items_in_pool",
            "Every selected item is in its task's pool.",
            "SELECT s.suite, s.task, s.item_id FROM selections.selected_items s "
            "ANTI JOIN pools.pool_items p USING (suite, task, item_id)",
        ),
        Check(
            "size_as_asked",
            "A selection without a token limit has K items, or the whole pool if that is smaller.",
            "SELECT s.suite, s.task, count(*) AS selected, any_value(a.k) AS k "
            "FROM selections.selected_items s JOIN selections.allocations a USING (suite, task) "
            "JOIN pools.pool_stats p USING (suite, task) "
            "WHERE a.tokens IS NULL GROUP BY s.suite, s.task "
            "HAVING count(*) <> least(any_value(a.k), any_value(p.n_items))",
        ),
        Check(
            "tokens_as_paid",
            "A selection for tokens keeps its limit; an item costs its share of the pool's tokens.",
            "WITH priced AS (SELECT pool_task, item_id, "
            "tokens / avg(tokens) OVER (PARTITION BY pool_task) AS price "
            "FROM pools.shared_item_costs) "
            "SELECT s.suite, s.task, sum(p.price * a.item_tokens) AS cost, "
            "any_value(a.tokens) AS tokens FROM selections.selected_items s "
            "JOIN selections.allocations a USING (suite, task) "
            "JOIN suites.suite_tasks t USING (suite, task) "
            "JOIN priced p USING (pool_task, item_id) WHERE a.tokens IS NOT NULL "
            "GROUP BY s.suite, s.task "
            "HAVING sum(p.price * a.item_tokens) > any_value(a.tokens) * (1 + 1e-6)",
        ),
    ],
)
def selected_items(work: Work) -> Produced:
    """One row per (suite, task, item_id): method, rank and weight of the K selected items.

    With `allocation: tokens`, the tokens of the task limit the items, which are selected by gain
    per token where the method has a gain.
    """
    file, name = work.suite.file, work.key["task"]
    evidence = evidence_of(work, name)
    fit = fit_from_tables(
        work.rows("item_parameters.item_parameters"), work.rows("item_parameters.abilities")
    )
    k, costs = count_and_costs(work, evidence)
    method = (file.per_item if evidence.kind == "per_item" else file.set_metric).selection
    keys = (work.key["suite"], file.pool.seed)
    selection = choose(method, evidence, fit, k, keys, costs)
    heaviest = selection.sort_values("weight", ascending=False).head(5)
    return Produced(
        {"selections.selected_items": selection},
        {
            "method": method,
            "items": len(selection),
            "of": len(evidence.items),
            "heaviest": ", ".join(
                f"{i} {w:.3f}" for i, w in zip(heaviest["item_id"], heaviest["weight"], strict=True)
            ),
        },
    )
