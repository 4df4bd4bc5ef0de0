"""The official full scores of MTEB(eng, v2): models that have all tasks, and draws of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mteblite.reference_scores.suspicion import suspicious_cells
from mteblite.seeds import generator

SCORES = Path(__file__).parents[2] / "../shared/scores"
BENCHMARK = "MTEB(eng, v2)"
MIN_MACRO = 0.45
"""Models below are not of the kind that anyone would reduce a benchmark for."""


@dataclass(frozen=True)
class Matrix:
    """Full scores of public models, complete ones only.

    Attributes:
        scores: (n_models, n_tasks), by model name and task name.
        noted: where a score is taken with a note; joint calibrations leave it out.
        types: type of each task.
    """

    scores: pd.DataFrame
    noted: pd.DataFrame
    types: dict[str, str]

    @property
    def families(self) -> dict[str, str]:
        """The organisation of each model."""
        return {str(m): str(m).split("/")[0] for m in self.scores.index}

    @property
    def macro(self) -> pd.Series:
        """Mean over types of the mean over tasks."""
        by_type = self.scores.T.groupby(pd.Series(self.types)).mean()
        return by_type.mean()


def available() -> bool:
    """Say whether the public scores are there."""
    return (SCORES / "official_scores.parquet").exists()


def load_matrix() -> Matrix:
    """Read the official scores as the leaderboard joins them, without what the product refuses.

    `lb_pick` marks the file that counts, as it does where the product reads such a table.
    """
    file = SCORES / "official_scores.parquet"
    cells = ["task_name", "split", "hf_subset"]
    names = ["model_name", "revision", *cells]
    counting = [("lb_pick", "=", True), ("entry_ix", "=", 0)]
    scores = pd.read_parquet(
        file, columns=[*names, "main_score", "experiment"], filters=counting, read_dictionary=names
    )
    tasks = pd.read_parquet(SCORES / "benchmark_tasks.parquet")
    tasks = tasks[tasks["benchmark"] == BENCHMARK]
    picked = scores[scores["experiment"].isna() & (scores["main_score"].abs() <= 1)]
    picked = picked.reset_index(drop=True)
    odd = suspicious_cells(
        picked, {BENCHMARK: list(tasks[cells].itertuples(index=False, name=None))}
    )
    picked["noted"] = picked.index.isin(odd.index)
    refused = odd.index[odd["decision"] == "refused"]
    counted = picked.drop(index=refused)
    counted = counted[counted["task_name"].isin(tasks["task_name"])]
    joined = counted.astype(dict.fromkeys(names, str)).merge(tasks, on=cells)
    table, noted = (
        joined.pivot_table(index="model_name", columns="task_name", values=name)
        for name in ("main_score", "noted")
    )
    types = dict(zip(tasks["task_name"], tasks["type"], strict=True))
    complete = Matrix(table.dropna(), noted, types)
    kept = complete.scores[complete.macro > MIN_MACRO].sort_index()
    return Matrix(kept, noted.loc[kept.index] > 0, types)


def reference_models(
    matrix: Matrix, n_models: int = 45, n_families: int = 33, seed: int = 0
) -> list[str]:
    """Draw families, at most three models of each."""
    rng = generator(seed, "reference")
    families = matrix.families
    names = rng.permutation(sorted(set(families.values())))[:n_families].tolist()
    members = {f: rng.permutation([m for m in families if families[m] == f])[:3] for f in names}
    chosen = [str(members[f][0]) for f in names]
    rest = [str(m) for f in names for m in members[f][1:]]
    return sorted([*chosen, *rng.permutation(rest)[: n_models - len(chosen)].tolist()])
