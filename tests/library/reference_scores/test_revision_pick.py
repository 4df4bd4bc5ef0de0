"""The leaderboard's rule for several files of a (model, task), against mteb's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite.reference_scores.revision_pick import is_range, pick_revisions, version_rank

MODEL = "intfloat/e5-base-v2"
PINNED = "f52bf8ec8c7124536f0efb74aca902b2995e5bcd"


def files(rows: list[dict[str, Any]]) -> pd.DataFrame:
    base = {"model_name": MODEL, "task_name": "T", "experiment": None, "mteb_version": None,
            "main_revision": PINNED}  # fmt: skip
    return pd.DataFrame([{**base, "file": f"{n:03}", **row} for n, row in enumerate(rows)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the pinned revision before any other, whatever was run later
        ({"revision": PINNED}, {"revision": "a" * 40, "mteb_version": "2.9.0"}),
        # then a version of mteb, then a revision, then the latest version
        ({"revision": "external", "mteb_version": "1.0.0"}, {"revision": "a" * 40}),
        ({"revision": "a" * 40}, {"revision": "external"}),
        ({"revision": "a" * 40}, {"revision": "no_revision_available"}),
        ({"revision": "3", "mteb_version": "1.38.9"}, {"revision": "1", "mteb_version": "1.4.0"}),
        ({"revision": "3", "mteb_version": "1.1.2.dev1"},
         {"revision": "1", "mteb_version": "1.1.2.dev0"}),
        # a range is no version
        ({"revision": "1", "mteb_version": "1.0.0"},
         {"revision": "3", "mteb_version": "2.10.0-2.18.7"}),
        # equal ranks: by name, not by the order of the rows
        ({"revision": "1", "file": "a"}, {"revision": "2", "file": "b"}),
    ],
)  # fmt: skip
def test_first_beats_second(first: dict[str, Any], second: dict[str, Any]) -> None:
    for rows in ([first, second], [second, first]):
        table = files(rows)
        kept = table[pick_revisions(table)]
        assert kept["revision"].tolist() == [first["revision"]]


def test_experiments_are_never_kept_and_compete_with_nothing() -> None:
    table = files([{"revision": PINNED, "experiment": "x"}, {"revision": "external"}])
    assert pick_revisions(table).tolist() == [False, True]


def test_ranges_and_versions() -> None:
    assert [is_range(v) for v in ("2.10.0-2.18.7", "1.1.2.dev0", "2.1.0")] == [True, False, False]
    ranks = version_rank(pd.Series(["1.9.0", None, "1.10.0", "2.10.0-2.18.7", "1.10.0.dev0"]))
    assert ranks.tolist() == [0, -1, 2, -1, 1]


def test_agrees_with_mteb_on_every_kind_of_conflict() -> None:
    from mteb.models.get_model_meta import get_model_metas
    from mteb.results import BenchmarkResults, ModelResult, TaskResult

    pinned = {m.name: m.revision for m in get_model_metas()}
    rng = np.random.default_rng(5)
    versions = [None, "1.1.2.dev0", "1.38.9", "1.4.0", "2.10.0-2.18.7", "2.9.0"]
    rows, results = [], []
    for model in (MODEL, "sentence-transformers/LaBSE", "not/registered"):
        for task in (f"task{n}" for n in range(60)):
            revisions = [pinned.get(model) or "main", "external", "no_revision_available", "1", "2"]
            for revision in rng.permutation(revisions)[: rng.integers(1, 5)]:
                version = versions[rng.integers(len(versions))]
                rows.append({
                    "model_name": model, "task_name": task, "revision": str(revision),
                    "mteb_version": version, "main_revision": pinned.get(model),
                })  # fmt: skip
                found = TaskResult.model_construct(
                    task_name=task, mteb_version=version, scores={"test": [{"main_score": 0.5}]}
                )
                results.append(ModelResult.model_construct(
                    model_name=model, model_revision=str(revision), task_results=[found],
                    experiment_name=None, model_meta=None,
                ))  # fmt: skip
    table = files(rows)
    joined = BenchmarkResults.model_construct(model_results=results, benchmark=None)
    wanted = {
        (m.model_name, t.task_name, m.model_revision, t.mteb_version)
        for m in joined.join_revisions()
        for t in m.task_results
    }
    kept = table[pick_revisions(table)].replace({np.nan: None})
    columns = ["model_name", "task_name", "revision", "mteb_version"]
    assert set(kept[columns].itertuples(index=False, name=None)) == wanted


def test_gives_the_pick_of_every_file_of_the_public_results(shared: Path) -> None:
    import duckdb
    from mteb.models.get_model_meta import get_model_metas

    with duckdb.connect() as connection:
        table = connection.execute(
            "SELECT file_id AS file, any_value(model_name) AS model_name, any_value(revision) AS "
            "revision, any_value(mteb_version) AS mteb_version, any_value(task_name) AS task_name, "
            "any_value(experiment) AS experiment, bool_or(lb_pick) AS lb_pick "
            "FROM read_parquet(?) GROUP BY file_id",
            [str(shared / "scores" / "official_scores.parquet")],
        ).df()
    table["main_revision"] = table["model_name"].map(
        {m.name: m.revision for m in get_model_metas()}
    )
    assert len(table) == 48_103
    assert (pick_revisions(table) == table["lb_pick"]).all()
