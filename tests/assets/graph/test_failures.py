"""One thing that fails does not stop its neighbours, and says why."""

from __future__ import annotations

import shutil

import numpy as np
from support import tiny_suite
from support.tiny_suite import SUITE, TASKS, table

UNSUPPORTED = "CEDRClassification"
"""A multilabel task of mteb; described from mteb's metadata, nothing is downloaded."""


def test_broken_models_fail_alone(home, upkeep, capfd):
    models = home.parent / "models"
    empty = models / "spare-1"
    for path in [*empty.rglob("*.safetensors"), *empty.rglob("*.bin")]:
        path.unlink()
    tiny_suite.write_model(models / "spare-2", "spare-2", 1.0, nan=True)
    document = tiny_suite.suite_document()
    for name in ("spare-1", "spare-2", "spare-3"):
        document["models"].append({"name": name, "family": name, "path": f"models/{name}"})
    tiny_suite.write_suite(home, document)
    report = upkeep(expect=1)
    out = capfd.readouterr()
    assert "Traceback" not in out.out + out.err  # the library's refusals are no bugs either

    failed = report["assets"]["embedding_stats"]["failed"]
    assert {k.split("|")[0] for k in failed} == {"spare-1", "spare-2"}
    ledger = table(home, "ledger.partitions").set_index(["asset", "partition_key"])
    for key, reason in failed.items():
        assert ledger.loc[("embedding_stats", key), "status"] == "failed"
        assert ledger.loc[("embedding_stats", key), "reason"] == reason
        expected = "holds no weights" if key.startswith("spare-1") else "NaN"
        assert expected in reason, reason
    assert {k.split("|")[0] for k in report["assets"]["full_scores"]["failed"]} == {
        "spare-1", "spare-2",
    }  # fmt: skip
    outcomes = table(home, "outcomes.pool_scores")
    assert (outcomes["model"] == "spare-3").sum() == len(TASKS)
    assert not outcomes["model"].isin(["spare-1", "spare-2"]).any()
    kept = table(home, "suites.suite_models").set_index("model")["kept"]
    assert kept["spare-3"]
    assert not kept["spare-1"]
    assert set(table(home, "item_parameters.abilities")["model"]) >= {"tiny-a1", "spare-3"}
    scores = table(home, "lite_scores.suite_scores")
    assert np.isfinite(scores["mean"]).all()

    status = {row["stage"]: row for row in tiny_suite.run_json("status", "--suite", SUITE)}
    assert status["embeddings"]["failed"] == 2 * len(TASKS)
    plan = upkeep(command="plan")
    assert {k.split("|")[0] for k in plan["assets"]["embedding_stats"]["run"]} == {
        "spare-1", "spare-2",
    }  # fmt: skip

    # Mended, the same model runs and the suite is whole again.
    for name in ("spare-1", "spare-2"):
        shutil.rmtree(models / name)
        tiny_suite.write_model(models / name, name, 1.0)
    upkeep()
    assert (table(home, "outcomes.pool_scores")["model"] == "spare-1").sum() == len(TASKS)


def test_unsupported_task_type_is_named_and_the_rest_goes_on(empty_home, upkeep, capfd):
    document = tiny_suite.suite_document()
    document["tasks"].insert(0, UNSUPPORTED)
    tiny_suite.write_suite(empty_home, document)
    report = upkeep(expect=1)
    ((key, reason),) = report["assets"]["pool_items"]["failed"].items()
    assert key.startswith(UNSUPPORTED)
    assert UNSUPPORTED in reason
    assert "MultilabelClassification" in reason
    assert "not supported" in reason
    assert report["failed_checks"] == ["suite_tasks.task_types_supported"]
    out = capfd.readouterr()
    assert "Traceback" not in out.out + out.err  # what we refuse ourselves is no bug
    assert set(table(empty_home, "lite_scores.task_scores")["task"]) == set(TASKS)
    assert set(table(empty_home, "validation.lomo_predictions")["task"]) == set(TASKS)
