"""Full mteb runs on stored vectors, and the scores read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mteblite.models.encoders import open_encoder
from mteblite.models.model_identity import identify
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.suites.task_description import TaskDescription
from mteblite.vectors.store import VectorStore
from mteblite_resources.full_runs import run_full
from mteblite_resources.results_source import read_full_score

PROMPTS = {"query": "query : ", "document": "passage : "}


def opened(home: Path, folder: Path, name: str = "m") -> StoredEncoder:
    spec = SuiteModel.named(name, "f", path=str(folder))
    return open_encoder(spec, identify(spec, home), VectorStore(home / "vectors"), home=home)


def described(task: Any) -> TaskDescription:
    metadata = task.metadata
    return TaskDescription(
        metadata.name, metadata.type, metadata.main_score, ("test",), ("default",)
    )


@pytest.mark.parametrize("kind", ["retrieval", "sts"])
def test_mteb_and_the_product_encode_each_text_once(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any, kind: str
) -> None:
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper

    folder = static_folder(tmp_path / "m", prompts=PROMPTS)
    task = getattr(tiny_tasks, kind)()
    task.load_data()
    if kind == "retrieval":
        data = task.dataset["default"]["test"]
        documents = [
            f"{title} {text}".strip()
            for title, text in zip(data["corpus"]["title"], data["corpus"]["text"], strict=True)
        ]
        asked = {"query": list(data["queries"]["text"]), "document": documents}
    else:
        rows = task.dataset["test"]
        asked = {"": [*rows["sentence1"], *rows["sentence2"]]}
    encoder = opened(tmp_path, folder)
    before = {p: encoder.vectors(texts[::2], task.metadata, p) for p, texts in asked.items()}
    path = run_full(task, encoder, tmp_path / "results")
    distinct = sum(len(set(texts)) for texts in asked.values())
    assert encoder.counts.encoded == distinct
    for prompt_type, texts in asked.items():
        after = encoder.vectors(texts, task.metadata, prompt_type)
        np.testing.assert_array_equal(after[::2], before[prompt_type])
    assert encoder.counts.encoded == distinct
    # The score is the one that mteb gives for the folder without any of this.
    plain = SentenceTransformerEncoderWrapper(str(folder), device="cpu")
    expected = mteb.evaluate(
        plain, getattr(tiny_tasks, kind)(), cache=None, co2_tracker=False, show_progress_bar=False
    ).task_results[0]
    score = read_full_score(tmp_path / "results", "m", encoder.result_revision, described(task))
    assert score is not None
    assert score.main_score == pytest.approx(expected.main_score, abs=1e-6)
    assert path.parent.name == encoder.result_revision


def test_mteb_reads_the_files_back(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    import mteb

    encoder = opened(tmp_path, static_folder(tmp_path / "m"), "runs/m@dim=4")
    path = run_full(tiny_tasks.sts(), encoder, tmp_path / "results")
    cache = mteb.ResultCache(tmp_path)
    assert cache.get_task_result_path("TinySTS", encoder.mteb_model_meta) == path
    result = cache.load_task_result("TinySTS", encoder.mteb_model_meta)
    assert result is not None
    meta = json.loads((path.parent / "model_meta.json").read_text())
    assert (meta["name"], meta["revision"]) == ("runs/m@dim=4", encoder.result_revision)


def test_cells_of_other_subsets_are_kept(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    encoder = opened(tmp_path, static_folder(tmp_path / "m"))
    results = tmp_path / "results"
    path = run_full(tiny_tasks.sts(), encoder, results)
    data = json.loads(path.read_text())
    other = dict(data["scores"]["test"][0], hf_subset="ar", main_score=0.25)
    data["scores"]["test"].append(other)
    path.write_text(json.dumps(data))
    run_full(tiny_tasks.sts(), encoder, results)
    both = TaskDescription("TinySTS", "STS", "cosine_spearman", ("test",), ("default", "ar"))
    own = read_full_score(results, "m", encoder.result_revision, described(tiny_tasks.sts))
    merged = read_full_score(results, "m", encoder.result_revision, both)
    assert own is not None
    assert merged is not None
    assert merged.main_score == pytest.approx((own.main_score + 0.25) / 2)


def test_a_failing_run_names_task_and_model(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    class Unavailable(tiny_tasks.sts):  # type: ignore[misc, name-defined]
        def load_data(self, **_: object) -> None:
            raise ConnectionError("the hub is down")

    encoder = opened(tmp_path, static_folder(tmp_path / "m"))
    with pytest.raises(RuntimeError, match=r"TinySTS with model m failed: .*the hub is down"):
        run_full(Unavailable(), encoder, tmp_path / "results")
    assert not list(tmp_path.glob("results/*/*/TinySTS.json"))
