"""Nothing depends on the order of a suite file, on the home's place, or on the run."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest
from support import tiny_suite
from support.tiny_suite import SUITE, ran, table

TABLES = {
    "pools.pool_items": (), "outcomes.item_outcomes": (), "outcomes.pool_scores": (),
    "reference_scores.full_scores": (), "item_parameters.item_parameters": (),
    "item_parameters.abilities": (), "selections.selected_items": (),
    "calibrations.calibrations": (), "validation.lomo_predictions": (),
    "validation.validation_metrics": (), "lite_scores.task_scores": (),
    "lite_scores.suite_scores": ("seconds",),
}  # fmt: skip


@pytest.mark.long
def test_other_order_and_other_place_give_the_same_scores(
    world, home, tmp_path, monkeypatch, upkeep
):
    expected = {name: table(home, name, drop) for name, drop in TABLES.items()}
    other = tmp_path / "elsewhere" / "home"
    for name in ("data", "models"):
        shutil.copytree(world.pristine / name, other.parent / name)
    for name in ("suites", "dbt"):
        shutil.copytree(world.pristine / "home" / name, other / name)
    document = tiny_suite.suite_document()
    for listed in ("tasks", "models"):
        document[listed].reverse()
    tiny_suite.write_suite(other, document)
    tiny_suite.use_home(monkeypatch, other)
    upkeep()
    for name, drop in TABLES.items():
        pd.testing.assert_frame_equal(
            expected[name], table(other, name, drop), rtol=0, atol=1e-6, obj=name
        )
    versions = table(other, "ledger.partitions").set_index(["asset", "partition_key"])
    before = table(home, "ledger.partitions").set_index(["asset", "partition_key"])
    suite_level = [
        (a, k) for a, k in before.index if k.split("/")[0] == SUITE and a != "lite_suite"
    ]
    assert len(suite_level) > 10
    differing = [
        key for key in suite_level
        if versions.loc[key, "data_version"] != before.loc[key, "data_version"]
    ]  # fmt: skip
    # Only what names the pool's key, which holds the place of the data, differs.
    assert {asset for asset, _ in differing} <= {"suite_tasks"}


def test_a_moved_home_computes_nothing_again(home, upkeep, monkeypatch):
    moved = home.parent.parent / "moved"
    shutil.copytree(home.parent, moved)
    tiny_suite.use_home(monkeypatch, moved / "home")
    assert set(ran(upkeep())) <= {"suite_tasks"}  # it has the place of the data, and equal rows
    path = moved / "data" / "TinySTS" / "pairs.jsonl"
    path.write_text(path.read_text().replace('": "', '": "a ', 1))
    made = ran(upkeep())
    assert all(key.startswith("TinySTS/") for key in made["pool_items"])
    assert len(made["pool_items"]) == 1
    shutil.rmtree(moved)
