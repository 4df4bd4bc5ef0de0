"""The parts of eng-super and ara-super whose data the hub stand-in serves, from the
suite file to the card of the release.

Suites that extend the packaged ones, as the README tells users to run a part, with models that
cost nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import tiny_suite

from mteblite.releases.release_files import read_release
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.frozen_tasks import packaged_suites
from mteblite_resources.home import Home

ENGLISH = (
    "AmazonCounterfactualClassification", "AskUbuntuDupQuestions", "BIOSSES",
    "Banking77Classification", "MassiveIntentClassification", "STS12", "STS13", "STS17",
    "STSBenchmark", "SummEvalSummarization.v2", "TweetSentimentExtractionClassification",
    "TwentyNewsgroupsClustering.v2",
)  # fmt: skip
ARABIC = (
    "AJGT.v2", "MassiveIntentClassification", "NTREXBitextMining", "NamaaMrTydiReranking",
    "RestaurantReviewSentimentClassification.v2", "STS17", "XNLI", "XQuADRetrieval",
)  # fmt: skip
NARROWED = {
    "SIB200ClusteringS2S": ["acm_Arab", "acq_Arab", "aeb_Arab", "ajp_Arab", "apc_Arab", "ars_Arab",
                            "ary_Arab", "arz_Arab"],
    "Tatoeba": ["ara-eng", "arz-eng"],
}  # fmt: skip
"""Of these the stand-in lacks one subset."""
STAND_INS = {"AskUbuntuDupQuestions", "NamaaMrTydiReranking"}
"""Other data than mteb's statistics tell of."""

MODELS = [
    {"name": "package:wordllama-256", "family": "wordllama"},
    {"name": "package:wordllama-64", "family": "wordllama-64"},
    {"name": "package:wordllama-1bit", "family": "wordllama-1bit"},
    {"name": "package:glove-50d", "family": "glove"},
    {"name": "package:glove-50d-sif", "family": "glove-sif"},
    {"name": "mteb/baseline-random-encoder", "family": "random"},
]
OWN = {"models": MODELS, "reference_scores": ["run"]}


def _english() -> dict[str, Any]:
    return {"name": "eng-part", "extends": "eng-super", "only": list(ENGLISH), **OWN}


def _arabic() -> dict[str, Any]:
    """The tasks that are served whole as the packaged suite lists them, two with fewer subsets."""
    listed = yaml.safe_load((packaged_suites() / "ara-super.yaml").read_text())["tasks"]
    tasks = [t for t in listed if t["task"] in ARABIC]
    tasks += [{**t, "hf_subsets": NARROWED[t["task"]]} for t in listed if t["task"] in NARROWED]
    return {"name": "ara-part", "extends": "ara-super", "tasks": tasks, **OWN}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("document", [_english(), _arabic()], ids=["eng-super", "ara-super"])
def test_served_part_goes_through_to_the_card(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    tiny_suite.use_home(monkeypatch, home)
    (home / "suites").mkdir(parents=True)
    tiny_suite.write_suite(home, document)
    report = tiny_suite.run_json("materialize", "--suite", document["name"])
    assert report["failed_checks"] == []
    catalog = load_catalog(Home(home))
    part = catalog.suite(document["name"])
    names = {e.task for e in part.tasks}
    assert len(names) == len(document.get("only") or document["tasks"])
    assert len(report["assets"]["item_outcomes"]["run"]) == len(MODELS) * len(names)
    scores = tiny_suite.run_json(
        "sql", "SELECT task, model, pool_score FROM outcomes.pool_scores "
               f"WHERE suite = '{document['name']}'"
    )  # fmt: skip
    assert len(scores) == len(MODELS) * len(names)
    assert all(-1 <= s["pool_score"] <= 1 for s in scores)
    stats = tiny_suite.run_json("sql", "SELECT task, n_texts FROM pools.pool_stats")
    planned = tiny_suite.run_json("plan", "--suite", document["name"])["workload"]
    estimated = {t["task"]: t["texts"] for t in planned["tasks"]}
    for row in stats:  # an estimate, and not a wild one
        if row["task"] not in STAND_INS:
            ratio = row["n_texts"] / estimated[row["task"]]
            assert 0.3 <= ratio <= 2.0, row
    code, _, err = tiny_suite.command(
        "export", "--suite", document["name"], "--out", str(tmp_path / "out")
    )
    assert code == 0, err
    release = read_release(tmp_path / "out")
    assert set(release.task_types) == names
    card = (tmp_path / "out" / "README.md").read_text()
    assert all(f"config_name: {name}" in card for name in names)
    assert "wordllama-64: kept package:wordllama-64 (of 1)" in release.document
