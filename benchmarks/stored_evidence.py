"""The evidence of a suite that a home holds, for studies of methods."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mteblite.item_parameters.assembling import assemble_evidence
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite_resources.artifacts import Artifacts
from mteblite_resources.database.duckdb_files import open_snapshot
from mteblite_resources.home import Home


@dataclass(frozen=True)
class Stored:
    """A suite's evidence, and by task the tokens of one more item."""

    evidences: list[TaskEvidence]
    item_tokens: dict[str, float]


def stored_evidence(folder: Path, suite: str) -> Stored:
    """Read a suite from the snapshot of a home; all reference models count, none is pruned."""
    home = Home(folder)
    artifacts = Artifacts(home.pools, home.observations)
    with open_snapshot(home.snapshot) as connection:

        def rows(table: str, by_suite: bool = False) -> pd.DataFrame:
            where = " WHERE suite = ?" if by_suite else ""
            return connection.execute(
                f"SELECT * FROM {table}{where}", [suite] if by_suite else []
            ).df()

        tasks = rows("suites.suite_tasks", by_suite=True)
        kept = rows("reference_scores.kept_models", by_suite=True)
        items, matrix = rows("pools.shared_pool_items"), rows("outcomes.outcome_matrix")
        scores = rows("reference_scores.full_score_vectors")
        costs = rows("pools.shared_pool_costs").set_index("pool_task")["item_tokens"]
    evidences = []
    for task in tasks.to_dict("records"):
        of_pool = [f[f["pool_task"] == task["pool_task"]] for f in (items, matrix, scores)]
        evidences.append(
            assemble_evidence(task, *of_pool, kept, lambda _, file: artifacts.load_array(file))
        )
    item_tokens = {
        t: float(costs[p]) for t, p in zip(tasks["task"], tasks["pool_task"], strict=True)
    }
    return Stored(evidences, item_tokens)
