"""A release of real tasks of every type, Arabic and English, parallel and own subsets included.

What the warehouse predicts for a candidate must come out of the released folder alone; the same
items run as plain mteb tasks; and no text of the data sets is in the folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import tiny_suite

from mteblite.lite_scores.observing import observe_selection
from mteblite.releases.released_task import rebuild_pool
from mteblite.seeds import generator
from mteblite.suites.suite_model import SuiteModel
from mteblite.task_types.scoring import set_statistic

SUITE = "parts"
CANDIDATE = "package:wordllama-128"
TYPES = {
    "BIOSSES": "STS",
    "STS17": "STS",
    "XQuADRetrieval": "Retrieval",
    "AskUbuntuDupQuestions": "Reranking",
    "AJGT.v2": "Classification",
    "XNLI": "PairClassification",
    "SIB200ClusteringS2S": "Clustering",
    "SummEvalSummarization.v2": "Summarization",
    "NTREXBitextMining": "BitextMining",
    "Tatoeba": "BitextMining",
    "LeeDocSTS": "STS",
}
FILE = f"""
name: {SUITE}
tasks:
  - task: BIOSSES
  - {{task: STS17, hf_subsets: [ar-ar, en-ar]}}
  - {{task: XQuADRetrieval, hf_subsets: [ar, en], split: validation}}
  - task: AskUbuntuDupQuestions
  - task: AJGT.v2
  - {{task: XNLI, hf_subsets: [ar], split: test}}
  - {{task: SIB200ClusteringS2S, hf_subsets: [ary_Arab, eng_Latn]}}
  - task: SummEvalSummarization.v2
  - {{task: NTREXBitextMining, hf_subsets: [arb_Arab-eng_Latn, eng_Latn-arb_Arab]}}
  - {{task: Tatoeba, hf_subsets: [ara-eng]}}
  - task: LeeDocSTS
k: 12
per_item: {{selection: fisher, estimator: gp}}
pool: {{max_items: 80, bm25_top: 10, max_relevant: 20, random_documents: 60, seed: 0}}
max_tokens: 512
models:
  - {{name: "package:wordllama-64", family: wordllama}}
  - {{name: "package:wordllama-256", family: wordllama}}
  - {{name: "package:wordllama-1bit", family: wordllama-1bit}}
  - {{name: "package:glove-50d", family: glove}}
  - {{name: "package:glove-50d-sif", family: glove-sif}}
  - {{name: "{CANDIDATE}", family: wordllama, role: candidate}}
reference_scores: [official]
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def home(hub: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home with the suite materialized; the hub stand-in is up."""
    root = tmp_path_factory.mktemp("hub-release") / "home"
    (root / "suites").mkdir(parents=True)
    (root / "suites" / f"{SUITE}.yaml").write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, root)
        patch.setenv(
            "MTEBLITE_OFFICIAL_SCORES", str(made_up_scores(root.parent / "scores.parquet"))
        )
        report = tiny_suite.run_json("materialize", "--suite", SUITE)
        assert report["failed_checks"] == []
    return root


def made_up_scores(path: Path) -> Path:
    """Full scores in the official table's columns: mteb's own runs would take half an hour, and
    what is given away does not depend on where they come from."""
    import yaml

    suite = yaml.safe_load(FILE)
    rows = []
    for m, model in enumerate(m["name"] for m in suite["models"]):
        for t, task in enumerate(suite["tasks"]):
            for subset in task.get("hf_subsets", ["default"]):
                rng = generator("made-up score", model, task["task"], subset)
                rows.append({
                    "model_name": model, "revision": "1", "mteb_version": "2.26.24",
                    "task_name": task["task"], "dataset_revision": "1",
                    "split": task.get("split", "test"), "hf_subset": subset,
                    "main_score": rng.uniform(0.3, 0.7), "experiment": None, "lb_pick": True,
                    "registered": True, "entry_ix": 0, "result_format": "new",
                    "file_id": 100 * m + t, "score_alt": float("nan"),
                })  # fmt: skip
    pd.DataFrame(rows).astype({"experiment": "string"}).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def folder(home: Path) -> Path:
    """The suite's release."""
    out = home.parent / "release"
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, home)
        tiny_suite.run_json("export", "--suite", SUITE, "--out", str(out))
    return out


@pytest.fixture(scope="module")
def release(folder: Path) -> Any:
    from mteblite.releases.release_files import read_release

    return read_release(folder)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An empty home that loads tasks as a release wants them."""
    from mteblite.tasks.pinned_tasks import PinnedTasks
    from mteblite_resources.home import Home
    from mteblite_resources.workbench import Workbench

    return Workbench(Home(tmp_path_factory.mktemp("elsewhere")), PinnedTasks()).ports


@pytest.fixture(scope="module")
def encoder(ports: Any, release: Any) -> Any:
    model = SuiteModel(name=CANDIDATE, family="x", role="candidate")
    return ports.models.encoder(model, release.max_tokens, lambda _: None)


def test_every_type_is_released(release: Any) -> None:
    assert release.task_types == dict(sorted(TYPES.items()))
    assert len(set(TYPES.values())) == 8


def test_the_folder_alone_gives_the_warehouses_scores(
    home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_suite.use_home(monkeypatch, tmp_path / "none")
    found = tiny_suite.run_json("score", CANDIDATE, "--release", str(folder))
    tasks = tiny_suite.table(home, "lite_scores.task_scores").sort_values("task")
    assert [t["task"] for t in found["tasks"]] == tasks["task"].tolist() == sorted(TYPES)
    for name in ("predicted", "lower", "upper"):
        values = np.array([t[name] for t in found["tasks"]], dtype=float)
        np.testing.assert_allclose(values, tasks[name].to_numpy(float), rtol=0, atol=1e-9)
    assert [t["out_of_range"] for t in found["tasks"]] == tasks["out_of_range"].tolist()
    total = tiny_suite.table(home, "lite_scores.suite_scores").iloc[0]
    for name in ("mean", "macro_mean", "macro_lower", "macro_upper"):
        assert found[name] == pytest.approx(total[name], abs=1e-9)
    assert found["n_texts"] == total["n_texts"]


def test_no_text_is_given_away(home: Path, folder: Path) -> None:
    texts: set[str] = set()
    for path in (home / "pools").rglob("texts.parquet"):
        texts.update(t for t in pd.read_parquet(path)["text"] if len(t) >= 20)
    assert len(texts) > 3000
    for path in folder.rglob("*"):
        if path.is_file():
            frame = path.suffix == ".parquet"
            content = pd.read_parquet(path).to_csv() if frame else path.read_text("utf-8")
            assert not [t for t in texts if t in content], path.name


def test_datasets_reads_every_task(folder: Path, release: Any) -> None:
    from datasets import load_dataset

    for task in release.tasks:
        items = load_dataset(str(folder), task.task, split="selected")
        assert items["item_id"][:] == task.fitted.selection["item_id"].tolist()


@pytest.mark.parametrize("name", sorted(TYPES))
def test_mteb_runs_the_selected_items(name: str, ports: Any, encoder: Any, release: Any) -> None:
    import mteb

    from mteblite.releases.released_tasks import restricted_task
    from mteblite.tasks.pinned_tasks import located

    task = next(t for t in release.tasks if t.task == name)
    result = mteb.evaluate(
        encoder, restricted_task(task, ports.tasks.source), cache=None, show_progress_bar=False
    ).task_results[0]
    assert result.task_name == name
    score = result.get_score()
    assert -1 <= score <= 1
    if TYPES[name] in ("Clustering", "BitextMining", "PairClassification"):
        return  # mteb's bootstraps, its F1 and its label prior are not the selection's statistic
    description = located(task.description, {})
    pool = rebuild_pool(task, ports.tasks.source.load(description))
    vectors = ports.models.embed(pool, encoder, description)
    selection, rows = task.fitted.selection, task.fitted.selected_rows
    found = observe_selection(task.fitted.kind, pool, vectors, selection)
    if task.fitted.kind == "set_metric":
        raw = set_statistic(TYPES[name], found, rows, np.full(len(rows), 1 / len(rows)))
    else:
        cells = rows.assign(outcome=found).groupby(["split", "hf_subset"])["outcome"]
        raw = float(cells.mean().mean())
    assert score == pytest.approx(raw, abs=6e-6)


def test_a_data_set_that_changed_is_named(ports: Any, release: Any) -> None:
    task = next(t for t in release.tasks if t.task == "BIOSSES")
    data = ports.tasks.source.load(task.description)
    cells = {
        cell: {"pairs": frames["pairs"].assign(text1=frames["pairs"]["text1"] + ".")}
        for cell, frames in data.cells.items()
    }
    revision = task.description.dataset_revision
    with pytest.raises(ValueError, match=rf"BIOSSES: item 'default/test/.*{revision}"):
        rebuild_pool(task, replace(data, cells=cells))
