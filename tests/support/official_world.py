"""Small folders of official results, and what reads them into a warehouse of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.suites.task_description import TaskDescription
from mteblite_assets.reference_scores.assets import official_results
from mteblite_resources.declared_tables import DeclaredTables
from mteblite_resources.official_results import OfficialResults, official_scores
from mteblite_resources.result_folder import folder_name
from mteblite_resources.warehouse import Warehouse

MODEL = "org/m"
REVISION = "a" * 40


def new_result(task: str = "T", **changes: Any) -> dict[str, Any]:
    """A result file of today's format."""
    entry = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": 0.5, "ap": 0.1}
    body = {"task_name": task, "mteb_version": "2.1.0", "dataset_revision": "d", "scores":
            {"test": [entry]}, "evaluation_time": 1.0}  # fmt: skip
    return {**body, **changes}


def subsets(**scores: Any) -> dict[str, Any]:
    """The `scores` of one test split."""
    return {"test": [{"hf_subset": h, "languages": [], "main_score": s} for h, s in scores.items()]}


def put(
    folder: Path,
    body: Any,
    *,
    model: str = MODEL,
    revision: str = REVISION,
    name: str = "",
    meta: bool = True,
    experiment: str = "",
) -> Path:
    """Write a result file (or text) where the repository would have it."""
    home = folder / "results" / folder_name(model) / revision
    if experiment:
        home = home / "experiments" / experiment
    home.mkdir(parents=True, exist_ok=True)
    if meta:
        (home / "model_meta.json").write_text(json.dumps({"name": model, "revision": revision}))
    task = body.get("task_name") or body.get("mteb_dataset_name") if isinstance(body, dict) else "X"
    path = home / (name or f"{task}.json")
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return path


class Official:
    """Official results of a folder or table, with what came of them as frames."""

    def __init__(self, location: Path, home: Path, cache: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.warehouse = Warehouse(home / "writer.duckdb", home / "mteblite.duckdb")
        self.results = OfficialResults(location, cache)
        written = official_results.self_written
        self.tables = DeclaredTables("official_results", (), written, self.warehouse)

    def ingest(self) -> pd.Series:
        """Read what is new; return the row of `result_sources`."""
        return self.results.ingest(self.tables).iloc[0]

    def scores(self, descriptions: list[TaskDescription]) -> pd.DataFrame:
        """Full scores of all public models."""
        return official_scores(self.tables, descriptions)

    def table(self, name: str) -> pd.DataFrame:
        """Rows of a table of the stage."""
        with self.warehouse.session() as connection:
            return connection.execute(f"FROM reference_scores.{name}").df()

    def cells(self) -> dict[tuple[str, str, str, str], float]:
        """Scores of what counts, by model, task, split and subset."""
        rows = self.table("official_cells")
        rows = rows[rows["picked"] & (rows["entry_ix"] == 0)]
        keys = zip(rows["model_name"], rows["task_name"], rows["split"], rows["hf_subset"],
                   strict=True)  # fmt: skip
        return dict(zip(keys, rows["main_score"], strict=True))

    def quarantine(self) -> list[tuple[str, str]]:
        """(decision, reason) of every row."""
        rows = self.table("quarantine").sort_values(["decision", "reason"])
        return list(zip(rows["decision"], rows["reason"], strict=True))
