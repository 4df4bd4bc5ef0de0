"""Official scores of public models enter joint calibrations, and nothing else; folds keep out."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import tiny_suite
from support.official_world import new_result, put, subsets
from support.ticks import Ticks, made_since
from support.tiny_suite import SUITE, TASKS, ran, table

from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.sample.models.catalog import PUBLIC_PARENTS

TUNE, PARENT = "org/fine-tune-of-b", "org/parent-of-b"
JOINT = {"calibration": "blup", "preset": None, "reference_scores": ["official", "run"],
         "validation": {"protocols": ["family_lomo"], "random_draws": 2}}  # fmt: skip


def publish(folder: Path, model: str, scores: dict[str, float]) -> None:
    for task, score in scores.items():
        put(folder, new_result(task, scores=subsets(default=score)), model=model)


@pytest.fixture
def mirror(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of nine public models, one trained from a model of the suite, one its parent."""
    folder = home.parent / "mirror"
    rng = np.random.default_rng(3)
    for number in range(7):
        level = rng.uniform(0.2, 0.8)
        scores = {t: float(np.clip(level + 0.05 * rng.normal(), 0.05, 0.95)) for t in TASKS}
        publish(folder, f"org/public{number}", scores)
    publish(folder, TUNE, {"TinySTS": 0.55, "TinyTopics": 0.5, "TinySearch": 0.6})
    publish(folder, PARENT, {"TinySTS": 0.5, "TinyTopics": 0.45, "TinySearch": 0.5})
    publish(folder, "tiny-c", {"TinySTS": 0.31})  # a model of the suite: no evidence of its own
    facts = home / "cache" / f"mteb-{importlib.metadata.version('mteb')}-registry.json"
    facts.parent.mkdir(parents=True, exist_ok=True)
    facts.write_text(json.dumps({"model_parents": {TUNE: "tiny-b", "tiny-b": PARENT}}))
    monkeypatch.setenv("MTEBLITE_OFFICIAL_SCORES", str(folder))
    return folder


def change(home: Path, **keys: object) -> None:
    tiny_suite.write_suite(home, tiny_suite.suite_document() | keys)


def release(home: Path) -> JointCalibration:
    return JointCalibration.from_json(
        str(table(home, "lite_scores.lite_suite_joint")["joint"].iloc[0])
    )


def official_rows(home: Path) -> pd.DataFrame:
    """The official scores that the suite fits on."""
    from mteblite_assets.cli.session import Session
    from mteblite_assets.graph.work import Work
    from mteblite_assets.validation.official_scores import official_scores
    from mteblite_resources.declared_tables import DeclaredTables

    session = Session()
    names = ("suites.suite_tasks", "reference_scores.public_scores")
    inputs = {name: table(home, name) for name in names}
    tables = DeclaredTables("lomo_predictions", (), (), session.bench.warehouse)
    work = Work({"suite": SUITE}, session.catalog, session.bench.ports, inputs, tables, print)
    rows = official_scores(work)
    assert rows is not None
    return rows


def joint_predictions(home: Path) -> pd.DataFrame:
    rows = table(home, "validation.lomo_predictions")
    return rows[rows["variant"].str.endswith("+blup")].reset_index(drop=True)


def test_public_models_enter_the_covariance_and_hide_with_their_family(
    home, upkeep, mirror, monkeypatch
):
    change(home, **JOINT | {"reference_scores": ["run"]})
    upkeep()
    alone = release(home)
    assert alone.blup.prior.n_effective == 4

    change(home, **JOINT)
    upkeep()
    taught = release(home)
    assert taught.blup.prior.n_effective == 4 + 7  # relatives of b are one of its family
    assert not np.allclose(taught.blup.prior.covariance, alone.blup.prior.covariance)
    assert ran(upkeep(command="plan")) == {}
    rows = official_rows(home)
    assert "tiny-c" not in set(rows["model"])
    assert set(rows.loc[rows["model"].isin([TUNE, PARENT]), "family"]) == {"b"}
    assert len(rows) == 9 * len(TASKS)

    before = joint_predictions(home)
    publish(mirror, TUNE, {"TinySTS": 0.93, "TinyTopics": 0.12, "TinySearch": 0.9})
    made = ran(upkeep())
    assert made["lomo_predictions"] == made["lite_suite"] == [SUITE]
    after = joint_predictions(home)
    hidden = before["fold"] == "b"
    assert hidden.any()
    # Its family's fold does not know the fine-tune; every other fold learned from it.
    pd.testing.assert_frame_equal(before[hidden], after[hidden])
    for fold in ("a", "c", "d"):
        rows = before["fold"] == fold
        assert not np.allclose(before.loc[rows, "predicted"], after.loc[rows, "predicted"])
    assert not np.allclose(release(home).blup.prior.covariance, taught.blup.prior.covariance)

    monkeypatch.setitem(PUBLIC_PARENTS, "tiny-a1", "org/public0")  # as if it were packaged
    rows = official_rows(home)
    assert set(rows.loc[rows["model"] == "org/public0", "family"]) == {"a"}


def test_a_suite_without_a_joint_calibration_does_not_notice(home, upkeep, mirror):
    change(home, reference_scores=["official", "run"], preset="seed")
    upkeep()
    publish(mirror, "org/public0", dict.fromkeys(TASKS, 0.5))
    made = ran(upkeep())
    assert made["official_results"] == ["official"]
    assert "public_scores" in made
    assert not {"lomo_predictions", "lite_suite", "lite_scores"} & set(made)
    assert ran(upkeep(command="plan")) == {}


@pytest.mark.long  # test_official_source has the short form
def test_the_daemon_reads_changed_results_once_and_forgets_none(home, upkeep, mirror, monkeypatch):
    monkeypatch.setattr("mteblite_assets.sensors.PLAN_SECONDS", 0)
    monkeypatch.setattr("mteblite_assets.graph.dbt_assets.run_dbt", lambda _: ([], ""))
    change(home, reference_scores=["official", "run"], preset="seed")
    ticks = Ticks()
    assert len(ticks.until_quiet(quiet=2)) == 1
    before = ticks.ledger()
    publish(mirror, "org/public0", dict.fromkeys(TASKS, 0.5))
    assert ticks.look() == []  # a mirror that is being copied is read once
    publish(mirror, "org/public1", dict.fromkeys(TASKS, 0.5))
    assert len(ticks.until_quiet(quiet=2)) == 1
    made = made_since(before, ticks.ledger())
    assert made["official_results"] == {"official"}
    assert not {"lomo_predictions", "lite_suite", "lite_scores"} & set(made)

    known = table(home, "reference_scores.public_scores")
    mirror.rename(mirror.parent / "unmounted")
    assert ticks.until_quiet(quiet=3) == []
    assert "no official scores at" in ticks.message
    monkeypatch.delenv("MTEBLITE_OFFICIAL_SCORES")
    assert ticks.until_quiet(quiet=3) == []
    pd.testing.assert_frame_equal(table(home, "reference_scores.public_scores"), known)


@pytest.mark.long
def test_presets_with_a_joint_variant_learn_and_the_release_of_another_does_not(
    home, upkeep, mirror
):
    from mteblite_assets.cli.session import Session
    from mteblite_assets.flow import declarations
    from mteblite_assets.graph.work import SettingsContext

    change(home, reference_scores=["official", "run"], preset="best")
    session = Session()
    context = SettingsContext({"suite": SUITE}, session.catalog, session.bench.ports)
    stages = declarations()
    assert stages["lomo_predictions"].reads("public_scores", context)
    assert not stages["lite_suite"].reads("public_scores", context)
    assert stages["lite_suite"].reads("lomo_predictions", context)
