"""Parts of one task count as one; a suite can be a part of another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mteblite.lite_scores.aggregation import aggregate
from mteblite.suites.catalog import Catalog
from mteblite.suites.suite_file import SuiteFileError
from mteblite.suites.task_types import TaskTypes, task_types
from mteblite.validation.targets import macro_weights, target_weights
from mteblite_assets.graph.keys import Grain, upstream_keys
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.home import Home

TYPES = TaskTypes(
    {"a": "Retrieval", "f1": "Retrieval", "f2": "Retrieval", "s": "STS"}, {"f1": "F", "f2": "F"}
)


def test_weights_of_parts() -> None:
    tasks = sorted(TYPES)
    weights = target_weights(tasks, TYPES, with_types=True)
    np.testing.assert_allclose(weights["mean"], [1 / 3, 1 / 6, 1 / 6, 1 / 3])
    np.testing.assert_allclose(weights["macro"], [1 / 4, 1 / 8, 1 / 8, 1 / 2])
    np.testing.assert_allclose(weights["type:Retrieval"], [1 / 2, 1 / 4, 1 / 4, 0])
    np.testing.assert_allclose(macro_weights(tasks, dict(TYPES)), [1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_mean_of_a_suite_with_parts_is_the_mean_over_tasks() -> None:
    rows = pd.DataFrame({"task": ["a", "f1", "f2", "s"], "predicted": [0.5, 0.2, 0.6, 0.9]})
    score = aggregate(rows, TYPES)
    assert score.mean == pytest.approx((0.5 + 0.4 + 0.9) / 3)
    assert score.macro_mean == pytest.approx(((0.5 + 0.4) / 2 + 0.9) / 2)
    assert score.n_tasks == 4


def test_types_come_from_the_warehouse_rows() -> None:
    rows = pd.DataFrame({"task": ["a", "b"], "task_type": ["STS", "STS"], "part_of": [None, "F"]})
    assert task_types(rows) == {"a": "STS", "b": "STS"}
    assert task_types(rows).parts == {"b": "F"}
    assert task_types(rows.drop(columns="part_of")).parts == {}


def _catalog(tmp_path: Path, **files: str) -> Catalog:
    home = Home(tmp_path / "home").prepare()
    for name, text in files.items():
        (home.suites / f"{name}.yaml").write_text(text)
    return load_catalog(home)


def test_a_part_of_a_benchmark_draws_its_pools_with_models_of_its_own(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path, part="""
name: part
extends: eng-super
only: [STS12, BIOSSES]
models: [{name: "package:wordllama-64", family: w}]
""")  # fmt: skip
    part, whole = catalog.suite("part"), catalog.suite("eng-super")
    assert [e.task for e in part.tasks] == ["BIOSSES", "STS12"]
    assert part.resolved
    for entry in part.tasks:
        assert entry.pool_task == whole.task(entry.task).pool_task
    assert [m.name for m in part.models] == ["package:wordllama-64"]
    assert (part.file.k, part.file.per_item) == (20, whole.file.per_item)


def test_full_scores_of_other_sources_are_not_shared(tmp_path: Path) -> None:
    part = """
name: {}
extends: eng-super
only: [STS12]
models: [{{name: "package:wordllama-64", family: w}}]
reference_scores: [{}]
"""
    catalog = _catalog(
        tmp_path, a=part.format("a", "run"), b=part.format("b", "run"), c=part.format("c", "local")
    )
    pools = [catalog.suite(name).task("STS12").pool_task for name in ("a", "b", "c", "eng-super")]
    assert pools[0] == pools[1]
    assert len(set(pools)) == 3
    # With nothing official to wait for, whatever other suites of the home ask for.
    assert upstream_keys(Grain.SOURCE, Grain.POOL_TASK, pools[0], catalog) == []
    assert upstream_keys(Grain.SOURCE, Grain.POOL_TASK, pools[3], catalog) == ["official"]


def test_a_part_of_a_suite_with_listed_tasks(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path, part="""
name: part
extends: ara-super
only: [STS17, XNLI]
k: 10
""")  # fmt: skip
    part, whole = catalog.suite("part"), catalog.suite("ara-super")
    assert [e.task for e in part.tasks] == ["XNLI", "STS17"]
    assert part.resolved
    assert part.file.max_tokens == 512
    assert [m.name for m in part.models] == [m.name for m in whole.models]
    assert {e.pool_task for e in part.tasks} < {e.pool_task for e in whole.tasks}
    assert {e.k for e in part.tasks} == {10}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("extends: eng-sooper", "did you mean `eng-super`"),
        ("extends: eng-super\nonly: [SciFakt]", "SciFakt"),
        ("extends: ara-super\nonly: [STS71]", "did you mean `STS17`"),
        ("extends: [eng-super]", "`extends`: expected the name of a suite, got list"),
        ("extends: ara-super\nonly: [STS17]\ntasks: [{k: 3}]", "`tasks.0.task` is missing"),
        ("extends: ara-super\nonly: [STS17]\ntasks: [3]", "`tasks.0`"),
        ("extends: ara-super\nonly: [3]", "`only.0`"),
    ],
)
def test_what_cannot_be_extended_is_an_error_that_names_it(
    tmp_path: Path, text: str, named: str
) -> None:
    catalog = _catalog(tmp_path, part=f"name: part\n{text}\n")
    with pytest.raises(SuiteFileError, match=r"part\.yaml") as error:
        catalog.suite("part")
    assert named in str(error.value)
