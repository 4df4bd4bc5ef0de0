"""Every reading command: what it prints for people, what it prints for scripts, its exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, REFERENCES, SUITE, TASKS, command, run_json

from mteblite_assets.cli.score_printing import print_scores
from mteblite_assets.graph.stages import STAGE_NAMES


def test_suites_lists_packaged_and_own(home: Path) -> None:
    rows = run_json("suites")
    names = [r["name"] for r in rows]
    assert {"eng", "eng-super", "ara-super", "mmteb", "sample"} < set(names)
    assert names[-1] == SUITE
    tiny = rows[-1]
    assert (tiny["tasks"], tiny["k"], tiny["references"], tiny["candidates"]) == (3, 6, 5, 1)
    code, out, _ = command("suites")
    assert code == 0
    assert "sample" in out


def test_tasks(home: Path) -> None:
    rows = run_json("tasks", "--suite", SUITE)
    assert [r["task"] for r in rows] == list(TASKS)
    assert [r["type"] for r in rows] == ["STS", "Classification", "Retrieval"]
    assert rows[0]["splits"] == ["test"]


def test_models_with_family_and_role(home: Path) -> None:
    rows = {r["model"]: r for r in run_json("models", "--suite", SUITE)}
    assert set(rows) == {*REFERENCES, CANDIDATE[0]}
    assert (rows["tiny-a1"]["family"], rows["tiny-a1"]["role"]) == ("a", "reference")
    assert rows[CANDIDATE[0]]["role"] == "candidate"


def test_plan_and_materialize_have_the_promised_shape(home: Path) -> None:
    for verb in ("plan", "materialize"):
        report = run_json(verb, "--suite", SUITE)
        assert report["suite"] == SUITE
        assert list(report["stages"]) == list(STAGE_NAMES)
        for stage in report["stages"].values():
            assert stage["run"] == []
            assert stage["fresh"] > 0
            assert stage["reasons"] == {}


def test_plan_says_why(home: Path) -> None:
    report = run_json("plan", "--suite", SUITE, "--stage", "selections", "--force")
    stage = report["stages"]["selections"]
    assert stage["run"] == [SUITE, *(f"{SUITE}/{t}" for t in sorted(TASKS))]
    assert set(stage["reasons"]) == set(stage["run"])
    code, out, _ = command("plan", "--suite", SUITE, "--stage", "selections", "--force")
    assert code == 0
    assert f"allocations {SUITE}: forced" in out
    assert f"selected_items {SUITE}/TinySTS: allocations will run" in out
    assert "4 partitions would run" in out


def test_scope_narrows(home: Path) -> None:
    report = run_json("plan", "--suite", SUITE, "--task", "TinySTS", "--model", "tiny-b", "--force")
    keys = report["stages"]["embeddings"]["run"]
    assert len(keys) == 1
    assert keys[0].startswith("tiny-b|TinySTS/")


def test_status_counts(home: Path) -> None:
    rows = {r["stage"]: r for r in run_json("status", "--suite", SUITE)}
    assert rows["embeddings"] == {
        "stage": "embeddings", "fresh": 15, "stale": 0, "missing": 0, "failed": 0,
        "reasons": [],
    }  # fmt: skip


def test_status_of_a_suite_that_was_never_run(home: Path) -> None:
    rows = run_json("status", "--suite", "sample")
    assert sum(r["missing"] for r in rows) > 100
    rows = [r for r in rows if r["stage"] != "dbt_reports"]  # these are of the home
    assert sum(r["fresh"] + r["stale"] + r["failed"] for r in rows) == 0


def test_sql(home: Path) -> None:
    query = f"SELECT task, k FROM suites.suite_tasks WHERE suite = '{SUITE}' ORDER BY task"
    assert run_json("sql", query) == [{"task": t, "k": 6} for t in sorted(TASKS)]
    code, out, _ = command("sql", query)
    assert code == 0
    assert "TinySearch" in out
    code, out, _ = command("sql", "SELECT 1 AS one WHERE false")
    assert out == "(no rows; columns: one)\n"
    assert run_json("sql", "SELECT 'nan'::DOUBLE AS x, [1, 2] AS y") == [{"x": None, "y": [1, 2]}]


def test_score_of_a_registered_candidate(home: Path) -> None:
    value = run_json("score", CANDIDATE[0], "--suite", SUITE)
    assert [t["task"] for t in value["tasks"]] == sorted(TASKS)
    assert {t["task_type"] for t in value["types"]} == {"STS", "Classification", "Retrieval"}
    mean = sum(t["predicted"] for t in value["tasks"]) / 3
    assert value["mean"] == pytest.approx(mean)
    for low, middle, high in (
        *((t["lower"], t["predicted"], t["upper"]) for t in value["tasks"]),
        (value["mean_lower"], value["mean"], value["mean_upper"]),
        (value["macro_lower"], value["macro_mean"], value["macro_upper"]),
    ):
        assert low <= middle <= high


def test_score_of_a_folder_registers_it_and_encodes_the_selection_only(home: Path) -> None:
    folder = home.parent / "models" / "spare-1"
    try:
        value = run_json("score", str(folder), "--suite", SUITE)
        assert value["model"] == "spare-1"
        assert 0 < value["n_encoded"] <= value["n_texts"]
        pools = run_json("sql", "SELECT sum(n_texts)::BIGINT AS n FROM pools.shared_pool_stats")
        assert value["n_texts"] < pools[0]["n"]
        # Asked again, nothing is encoded and the answer is the same.
        assert run_json("score", "spare-1", "--suite", SUITE)["mean"] == value["mean"]
        models = {r["model"]: r["role"] for r in run_json("models", "--suite", SUITE)}
        assert models["spare-1"] == "candidate"
    finally:
        code, out, err = command("models", "remove", "spare-1", "--suite", SUITE)
        assert code == 0, err
    assert "no longer in suite" in out
    left = run_json("sql", "SELECT * FROM lite_scores.task_scores WHERE model = 'spare-1'")
    assert left == []


def test_score_for_people(home: Path) -> None:
    code, out, err = command("--quiet", "score", CANDIDATE[0], "--suite", SUITE)
    assert code == 0, err
    for text in ("Predicted full scores of", "By task type", "macro mean", "texts", "90%"):
        assert text in out
    assert out.index("macro mean") < out.index("By task type") < out.index("TinySTS")


@pytest.mark.parametrize(
    ("headline", "order"),
    [("mean", ["mean", "macro mean"]), ("macro_mean", ["macro mean", "mean"])],
)
def test_the_headline_of_the_suite_comes_first(
    headline: str, order: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ends = {f"{m}_{e}": v for m in ("mean", "macro") for e, v in (("lower", 0.4), ("upper", 0.7))}
    total = {"mean": 0.5, "macro_mean": 0.6, "out_of_range": False, "n_texts": 1, "n_encoded": 0,
             "seconds": 0.0, "level": 0.9, "interval_method": "none", "warnings": "",
             **ends}  # fmt: skip
    head = {"model": "m", "suite": "s", "headline": headline}
    print_scores(head, [], [], total, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    means = [line for line in lines if "mean" in line]
    assert [re.sub(r"[^a-z ].*", "", m.strip(" │|")).strip() for m in means] == order
    print_scores(head, [], [], total, as_json=True)
    assert json.loads(capsys.readouterr().out)["headline"] == headline


def test_score_against_another_model(home: Path) -> None:
    """A candidate against a reference model: one row per target, signs turn with the order."""
    there = run_json("score", CANDIDATE[0], "--against", "tiny-d", "--suite", SUITE)
    back = run_json("score", "tiny-d", "--against", CANDIDATE[0], "--suite", SUITE)
    rows = {r["target"]: r for r in there["differences"]}
    assert set(rows) == {
        "macro", "mean", "type:STS", "type:Classification", "type:Retrieval",
        *(f"task:{t}" for t in TASKS),
    }  # fmt: skip
    tasks = [rows[f"task:{t}"]["difference"] for t in TASKS]
    assert rows["mean"]["difference"] == pytest.approx(sum(tasks) / 3)
    for row, other in zip(there["differences"], back["differences"], strict=True):
        assert row["difference"] == pytest.approx(-other["difference"])
        assert row["lower"] <= row["difference"] <= row["upper"]
        assert 0.0 <= row["probability"] <= 1.0
    # tiny-d knows the words worst of all.
    assert rows["macro"]["difference"] > 0
    assert (there["level"], there["not_scored"]) == (0.9, [])
    code, out, err = command(
        "--quiet", "score", CANDIDATE[0], "--against", CANDIDATE[0], "--suite", SUITE
    )
    assert code == 0, err
    assert f"{CANDIDATE[0]} minus {CANDIDATE[0]} on suite tiny (points" in out
    assert "undecided" in out
    assert "better" not in out
    code, _, err = command("score", CANDIDATE[0], "--against", "./nowhere", "--suite", SUITE)
    assert code == 2
    assert "no folder './nowhere'" in err


def test_a_comparison_says_that_a_model_collapsed(home: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tiny_suite.write_model(tmp_path / "flat", "flat", 1.0)
    weights = next(folder.rglob("*.safetensors"))
    save_file({k: 0 * v + 1 for k, v in load_file(weights).items()}, weights)
    words = ("score", str(folder), "--against", "tiny-d", "--suite", SUITE)
    code, out, err = command("--quiet", *words)
    assert code == 0, err
    (said,) = (line for line in out.splitlines() if line.startswith("warning"))
    assert said.startswith("warning: flat: degenerate: all texts of every task got the same vector")
    assert list(run_json(*words)["warnings"]) == ["flat"]
    command("models", "remove", "flat", "--suite", SUITE)


def test_add_and_remove_leave_the_suite_as_it_was(home: Path) -> None:
    before = run_json("models", "--suite", SUITE)
    folder = str(home.parent / "models" / "spare-2")
    code, out, err = command(
        "models", "add", "mine+norm", "--suite", SUITE, "--path", folder, "--family", "f",
        "--prompt", "query=query: ",
    )  # fmt: skip
    assert code == 0, err
    assert "mine+norm: candidate of suite tiny, family f" in out
    assert command("models", "remove", "mine+norm", "--suite", SUITE)[0] == 0
    assert run_json("models", "--suite", SUITE) == before


def test_failed_partition_gives_exit_code_one(home: Path) -> None:
    folder = tiny_suite.write_model(home.parent / "models" / "broken", "broken", 0.5, nan=True)
    command("models", "add", "broken", "--suite", SUITE, "--path", str(folder))
    try:
        code, _, err = command("--quiet", "materialize", "--suite", SUITE, "--model", "broken",
                               "--stage", "lite_scores")  # fmt: skip
        assert code == 1
        assert "failed: lite_scores broken|tiny" in err
        assert "NaN" in err or "finite" in err
        assert "Traceback" not in err
    finally:
        command("models", "remove", "broken", "--suite", SUITE)


@pytest.mark.parametrize("verb", [[], ["plan"], ["models", "add"], ["score"], ["dev"]])
def test_help_needs_no_home(verb: list[str], bare_home: Path) -> None:
    code, out, _ = command(*verb, "--help")
    assert code == 0
    assert out.startswith("Usage: mteblite")


def test_console_script(home: Path) -> None:
    """The installed script passes exit codes on and keeps stdout for the result."""
    script = Path(sys.executable).with_name("mteblite")
    if not script.exists():
        pytest.skip("mteblite is not installed in this environment")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(script), *arguments], env=environment, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip

    good = run("sql", "SELECT 1 AS one", "--json")
    assert (good.returncode, json.loads(good.stdout)) == (0, [{"one": 1}])
    bad = run("plan", "--suite", "nix")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: no suite 'nix'")
