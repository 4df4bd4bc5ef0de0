"""Selections: the K items of each task."""

from __future__ import annotations

from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of, suite_task_of
from mteblite_assets.item_parameters.fitting import fit_from_tables
from mteblite_assets.selections.registry import select


@stage_asset(
    grain=Grain.SUITE_TASK,
    deps=[*EVIDENCE, "item_parameters"],
    tables=["selections.selected_items"],
    code_version="1",
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
            "A selection has K items, or the whole pool where that is smaller.",
            "SELECT s.suite, s.task, count(*) AS selected, any_value(t.k) AS k "
            "FROM selections.selected_items s JOIN suites.suite_tasks t USING (suite, task) "
            "JOIN pools.pool_stats p USING (suite, task) GROUP BY s.suite, s.task "
            "HAVING count(*) <> least(any_value(t.k), any_value(p.n_items))",
        ),
    ],
)
def selected_items(work: Work) -> Produced:
    """One row per (suite, task, item_id): method, rank and weight of the K selected items."""
    task = suite_task_of(work, work.key["task"])
    evidence = evidence_of(work, work.key["task"])
    fit = fit_from_tables(
        work.rows("item_parameters.item_parameters"), work.rows("item_parameters.abilities")
    )
    keys = (work.key["suite"], work.catalog.suite(work.key["suite"]).file.pool.seed)
    selection = select(task["selection"], evidence, fit, int(task["k"]), keys)
    heaviest = selection.sort_values("weight", ascending=False).head(5)
    return Produced(
        {"selections.selected_items": selection},
        {
            "method": task["selection"],
            "items": len(selection),
            "of": len(evidence.items),
            "heaviest": ", ".join(
                f"{i} {w:.3f}" for i, w in zip(heaviest["item_id"], heaviest["weight"], strict=True)
            ),
        },
    )
