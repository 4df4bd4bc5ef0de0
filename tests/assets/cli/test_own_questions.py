"""The retrieval-qa recipe on a user's own questions and answers."""

from __future__ import annotations

import json
from pathlib import Path

from support import tiny_suite
from support.tiny_suite import command, run_json

OWN = """
name: my-qa
extends: retrieval-qa
only: [OwnQA]
models:
  - {name: tiny-b, family: b, path: models/tiny-b}
"""
METRICS = {"ndcg_at_10", "map_at_10", "mrr_at_10", "auprc"}


def test_own_questions_are_scored_by_all_metrics_of_the_recipe(bare_home: Path) -> None:
    root = bare_home.parent
    tiny_suite.write_data(root / "data")
    (root / "data" / "TinySearch").rename(root / "data" / "qa")
    tiny_suite.write_model(root / "models" / "tiny-b", "tiny-b", 0.8)
    (bare_home / "suites" / "my-qa.yaml").write_text(OWN)
    stages = [t for s in ("suites", "pools", "embeddings", "outcomes") for t in ("--stage", s)]
    report = run_json("materialize", "--suite", "my-qa", *stages)
    assert report["failed_checks"] == []
    (row,) = run_json("sql", "SELECT pool_score, metrics FROM outcomes.pool_scores")
    metrics = json.loads(row["metrics"])
    assert set(metrics) >= METRICS
    assert row["pool_score"] == metrics["ndcg_at_10"]
    assert 0 < metrics["map_at_10"] <= metrics["ndcg_at_10"] <= 1


def test_own_data_that_is_not_there_is_named(bare_home: Path) -> None:
    code, _, err = command("plan", "--suite", "retrieval-qa", "--task", "SciFact")
    assert code == 0
    assert "task OwnQA is left out" in err
    assert "data/qa" in err
    (bare_home / "suites" / "my-qa.yaml").write_text(OWN)
    code, _, err = command("plan", "--suite", "my-qa")
    assert code == 2
    assert "data/qa" in err
