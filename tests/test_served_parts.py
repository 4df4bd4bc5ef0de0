"""The parts of eng-super and ara-super whose data the hub stand-in serves, up to the outcomes.

Suites that extend the packaged ones, as the README tells users to run a part, with models that
cost nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_suite
import yaml

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
    {"name": "package:wordllama-64", "family": "wordllama"},
    {"name": "package:glove-50d", "family": "glove"},
]
STAGES = ("suites", "pools", "embeddings", "outcomes")


def _english() -> dict[str, Any]:
    return {"name": "eng-part", "extends": "eng-super", "only": list(ENGLISH), "models": MODELS}


def _arabic() -> dict[str, Any]:
    """The tasks that are served whole as the packaged suite lists them, two with fewer subsets."""
    listed = yaml.safe_load((packaged_suites() / "ara-super.yaml").read_text())["tasks"]
    tasks = [t for t in listed if t["task"] in ARABIC]
    tasks += [{**t, "hf_subsets": NARROWED[t["task"]]} for t in listed if t["task"] in NARROWED]
    return {"name": "ara-part", "extends": "ara-super", "tasks": tasks, "models": MODELS}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("document", [_english(), _arabic()], ids=["eng-super", "ara-super"])
def test_served_part_goes_through_to_the_outcomes(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    tiny_suite.use_home(monkeypatch, home)
    (home / "suites").mkdir(parents=True)
    tiny_suite.write_suite(home, document)
    stages = [text for stage in STAGES for text in ("--stage", stage)]
    report = tiny_suite.run_json("materialize", "--suite", document["name"], *stages)
    assert report["failed_checks"] == []
    catalog = load_catalog(Home(home))
    part, whole = catalog.suite(document["name"]), catalog.suite(document["extends"])
    names = {e.task for e in part.tasks}
    assert len(names) == len(document.get("only") or document["tasks"])
    assert len(report["assets"]["item_outcomes"]["run"]) == 2 * len(names)
    shared = {e.task for e in part.tasks if e.pool_task == whole.task(e.task).pool_task}
    assert names - shared == set(NARROWED) & names
    scores = tiny_suite.run_json(
        "sql", "SELECT task, model, pool_score FROM outcomes.pool_scores "
               f"WHERE suite = '{document['name']}'"
    )  # fmt: skip
    assert len(scores) == 2 * len(names)
    assert all(-1 <= s["pool_score"] <= 1 for s in scores)
    stats = tiny_suite.run_json("sql", "SELECT task, n_texts FROM pools.pool_stats")
    planned = tiny_suite.run_json("plan", "--suite", document["name"])["workload"]
    estimated = {t["task"]: t["texts"] for t in planned["tasks"]}
    for row in stats:  # an estimate, and not a wild one
        if row["task"] not in STAND_INS:
            ratio = row["n_texts"] / estimated[row["task"]]
            assert 0.3 <= ratio <= 2.0, row
