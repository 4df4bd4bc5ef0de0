"""Real benchmark tasks through every stage, from the hub stand-in of ../shared.

One suite lists a task of each type with small pools and goes through the whole graph; a second
has the cheapest task of each type with all caps null, where the pool is the task and its score
must be mteb's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import tiny_suite

from mteblite_assets.graph.stages import STAGE_NAMES

pytestmark = pytest.mark.long

TASKS = """
  - task: STSBenchmark
  - task: SciFact
  - task: Banking77Classification
  - {task: XNLI, hf_subsets: [ar]}
  - {task: SIB200ClusteringS2S, hf_subsets: [ary_Arab]}
  - task: SummEvalSummarization.v2
  - {task: NTREXBitextMining, hf_subsets: [arb_Arab-eng_Latn, eng_Latn-arb_Arab]}
  - task: AskUbuntuDupQuestions
  - {task: XQuADRetrieval, hf_subsets: [ar], split: validation}
"""
MODELS = """
  - {name: "package:wordllama-64", family: wordllama}
  - {name: "package:glove-50d", family: glove}
  - {name: "package:wordllama-256", family: wordllama, role: candidate}
"""
SMALL = f"""
name: hub-small
tasks: {TASKS}
k: 10
pool: {{max_items: 60, bm25_top: 10, max_relevant: 20, random_documents: 100, seed: 0}}
models: {MODELS}
reference_scores: [run]
"""
WHOLE = """
name: hub-whole
tasks:
  - task: BIOSSES
  - {task: XQuADRetrieval, hf_subsets: [ar], split: validation}
  - task: AskUbuntuDupQuestions
  - {task: AmazonCounterfactualClassification, hf_subsets: [en]}
  - {task: XNLI, hf_subsets: [ar]}
  - {task: SIB200ClusteringS2S, hf_subsets: [ary_Arab]}
  - task: SummEvalSummarization.v2
  - {task: Tatoeba, hf_subsets: [ara-eng]}
pool: {max_items: null, bm25_top: null, max_relevant: null, random_documents: null, seed: 0}
models:
  - {name: "package:wordllama-128", family: wordllama}
  - {name: "package:wordllama-256", family: wordllama}
reference_scores: [run]
"""
TYPES = {
    "BIOSSES": "STS",
    "XQuADRetrieval": "Retrieval",
    "AskUbuntuDupQuestions": "Reranking",
    "AmazonCounterfactualClassification": "Classification",
    "XNLI": "PairClassification",
    "SIB200ClusteringS2S": "Clustering",
    "SummEvalSummarization.v2": "Summarization",
    "Tatoeba": "BitextMining",
}
POOL_STAGES = ("suites", "pools", "embeddings", "outcomes", "reference_scores")


@pytest.fixture(scope="module")
def home(hub: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with the two suites; the hub stand-in is up."""
    root = tmp_path_factory.mktemp("hub-suite") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTEBLITE_HOME", str(root))
        patch.setenv("DAGSTER_HOME", str(root / "dagster"))
        (root / "suites").mkdir(parents=True)
        (root / "suites" / "small.yaml").write_text(SMALL)
        (root / "suites" / "whole.yaml").write_text(WHOLE)
        yield root


def run(suite: str, *, tasks: tuple[str, ...] = (), stages: tuple[str, ...] = ()) -> Any:
    """Materialize and return the report."""
    from mteblite_assets.cli.materializing import materialize
    from mteblite_assets.cli.session import Session
    from mteblite_assets.graph.plan import Scope

    return materialize(Session(), Scope(suite, tasks, (), stages))


def query(sql: str, parameters: list[Any] | None = None) -> Any:
    """Query the published warehouse."""
    from mteblite_assets.cli.session import Session

    return Session().bench.warehouse.query(sql, parameters or [])


@pytest.fixture(scope="module")
def small(home: Path) -> Any:
    """The report of the whole graph on the small suite."""
    return run("hub-small")


@pytest.fixture(scope="module")
def whole(home: Path) -> Any:
    """Pool scores beside mteb's scores, with all caps null.

    Two models, because the second must not see what the first did to mteb's task object.
    """
    report = run("hub-whole", stages=POOL_STAGES)
    assert not any(report.failed.values()), report.failed
    scores = query(
        "SELECT task, model, t.task_type, pool_score, main_score FROM suites.suite_tasks t "
        "JOIN outcomes.pool_scores USING (suite, task) "
        "JOIN reference_scores.full_scores USING (suite, task, model) WHERE suite = 'hub-whole'"
    )
    return scores.set_index("task")


def test_all_nine_tasks_go_through_every_stage(small: Any) -> None:
    assert small.good, (small.failed, small.failed_checks)
    stages = small.as_json()["stages"]
    assert tuple(stages) == STAGE_NAMES
    assert all(s["run"] for s in stages.values())


def test_candidate_has_a_lite_score_on_every_task(small: Any) -> None:
    scores = query(
        "SELECT task, predicted, lower, n_items, interval_method FROM lite_scores.task_scores "
        "WHERE suite = 'hub-small' AND model = 'package:wordllama-256'"
    )
    assert len(scores) == 9
    assert scores["predicted"].between(-1, 1).all()
    assert (scores["n_items"] == 10).all()
    # Two families of one model each leave nothing to validate on: no interval is claimed.
    assert set(scores["interval_method"]) == {"none"}
    assert scores["lower"].isna().all()


def test_second_run_runs_nothing(small: Any) -> None:
    again = run("hub-small")
    assert {name: plan.run for name, plan in again.plans.items() if plan.run} == {}


def test_small_pools_score_near_the_full_task(small: Any) -> None:
    scores = query(
        "SELECT task, model, t.task_type, pool_score, main_score FROM outcomes.pool_scores "
        "JOIN reference_scores.full_scores USING (suite, task, model) "
        "JOIN suites.suite_tasks t USING (suite, task) WHERE suite = 'hub-small'"
    )
    assert len(scores) == 18
    # A pool has fewer documents to confuse a query with: it scores higher, never much lower.
    easier = scores["task_type"].isin(["Retrieval", "BitextMining"])
    near = (scores["pool_score"] - scores["main_score"]).abs()
    assert (near[~easier] < 0.2).all(), scores
    assert (scores["pool_score"] - scores["main_score"] > -0.1)[easier].all(), scores


@pytest.mark.parametrize("task", list(TYPES))
def test_whole_pool_scores_what_mteb_scores(whole: Any, task: str) -> None:
    rows = whole.loc[task]
    assert set(rows["task_type"]) == {TYPES[task]}
    assert len(rows) == 2
    assert rows["pool_score"].tolist() == pytest.approx(rows["main_score"].tolist(), abs=1e-6)


def test_hub_down_fails_its_task_alone(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mteblite.tasks.mteb_tasks import MtebTasks
    from mteblite_resources.resources import TaskSourceResource

    home = tmp_path / "home"
    tiny_suite.use_home(monkeypatch, home)
    (home / "suites").mkdir(parents=True)
    tiny_suite.write_suite(home, {
        "name": "down", "tasks": ["STS12", "LeeDocSTS"], "reference_scores": ["run"],
        "models": [{"name": "package:wordllama-64", "family": "wordllama"}],
    })  # fmt: skip
    # One try: huggingface_hub's own retries take half a minute each.
    monkeypatch.setattr(TaskSourceResource, "get_tasks", lambda _: MtebTasks(1, 0.1))
    hub.forget("mteb/sts12-sts")
    with hub.down():
        report = run("down", stages=POOL_STAGES)
    assert not report.good
    ((key, reason),) = report.failed["pool_items"].items()
    assert key.startswith("STS12/")
    assert "STS12" in reason
    assert "mteb/sts12-sts" in reason
    scores = query("SELECT task FROM outcomes.pool_scores WHERE suite = 'down'")
    assert scores["task"].tolist() == ["LeeDocSTS"]
    # The hub is back: the next run mends it and repeats nothing.
    again = run("down", stages=POOL_STAGES)
    assert again.good
    assert [k.split("|")[-1].split("/")[0] for k in again.plans["item_outcomes"].run] == ["STS12"]
