"""What a change makes run: its own partitions and the stages that gather them, nothing else."""

from __future__ import annotations

import shutil

from support import tiny_suite
from support.tiny_suite import SUITE, TASKS, counts, ran, table

PER_MODEL = ("embedding_stats", "item_outcomes", "full_scores")
GATHERING = ("outcome_matrix", "full_score_vectors", "item_parameters", "selected_items",
             "calibrations")  # fmt: skip


def _spare(home, name="spare-1"):
    return str(home.parent / "models" / name)


def _add(home, name, *options):
    code, _, err = tiny_suite.command(
        "models", "add", name, "--suite", SUITE, "--path", _spare(home, name), *options
    )
    assert code == 0, err


def test_new_reference_model_runs_its_own_partitions_and_gathers_once(home, upkeep):
    _add(home, "spare-1", "--role", "reference", "--family", "spare")
    planned = upkeep(command="plan")
    report = upkeep()
    made = ran(report)
    for asset in PER_MODEL:
        assert [k.split("|")[0] for k in made[asset]] == ["spare-1"] * len(TASKS)
        assert made[asset] == ran(planned)[asset]
    numbers = counts(report)
    assert {a: numbers[a] for a in GATHERING} == dict.fromkeys(GATHERING, len(TASKS))
    once = {"roster", "kept_models", "allocations", "lomo_predictions",
            "validation_metrics", "lite_suite", "lite_scores"}  # fmt: skip
    assert set(numbers) - set(PER_MODEL) - set(GATHERING) == once
    assert {numbers[a] for a in once} == {1}
    outcomes = table(home, "outcomes.pool_scores")
    assert (outcomes["model"] == "spare-1").sum() == len(TASKS)
    assert counts(upkeep(command="plan")) == {}


def test_new_candidate_runs_its_lite_scores_and_the_reports_only(home):
    _add(home, "spare-2")
    report = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert ran(report) == {"lite_scores": [f"spare-2|{SUITE}"], "dbt_reports": ["all"]}
    scores = table(home, "lite_scores.task_scores")
    assert set(scores["model"]) == {"tiny-x", "spare-2"}
    assert "spare-2" in set(table(home, "lite_leaderboard")["model"])


def test_removed_reference_model_leaves_every_fit(home, upkeep):
    code, _, err = tiny_suite.command("models", "remove", "tiny-c", "--suite", SUITE)
    assert code == 0, err
    numbers = counts(upkeep())
    assert not set(numbers) & set(PER_MODEL)
    assert numbers["roster"] == 1
    assert "tiny-c" not in set(table(home, "item_parameters.abilities")["model"])
    assert "tiny-c" not in set(table(home, "outcomes.item_outcomes")["model"])


def test_equal_results_stop_the_wave(home, upkeep):
    forced = tiny_suite.run_json(
        "materialize", "--suite", SUITE, "--force", "--stage", "pools", "--stage", "embeddings",
        "--stage", "outcomes", "--stage", "selections",
    )  # fmt: skip
    numbers = counts(forced)
    assert numbers == {
        "pool_items": 3, "pool_costs": 3, "embedding_stats": 15, "item_outcomes": 15,
        "outcome_matrix": 3, "allocations": 1, "selected_items": 3,
    }  # fmt: skip
    assert counts(upkeep(command="plan")) == {}


def test_changed_k_selects_again_on_the_same_outcomes(home, upkeep):
    document = tiny_suite.suite_document() | {"k": 8}
    tiny_suite.write_suite(home, document)
    numbers = counts(upkeep())
    untouched = {
        "pool_items",
        "pool_costs",
        "item_parameters",
        "outcome_matrix",
        "full_score_vectors",
        "roster",
        *PER_MODEL,
    }
    assert not set(numbers) & untouched
    assert numbers["selected_items"] == len(TASKS)
    assert numbers["lite_scores"] == 1
    sizes = table(home, "selections.selected_items").groupby("task").size()
    assert set(sizes) == {8}
    assert counts(upkeep(command="plan")) == {}


def test_checkpoint_overwritten_in_place_is_another_model(home, upkeep):
    before = table(home, "embeddings.embedding_stats").set_index(["pool_task", "model"])
    scores = table(home, "outcomes.pool_scores").set_index(["task", "model"])["pool_score"]
    shutil.rmtree(home.parent / "models" / "tiny-b")
    shutil.copytree(_spare(home, "spare-3"), home.parent / "models" / "tiny-b")
    report = upkeep()
    for asset in PER_MODEL:
        assert [k.split("|")[0] for k in ran(report)[asset]] == ["tiny-b"] * len(TASKS)
    after = table(home, "embeddings.embedding_stats").set_index(["pool_task", "model"])
    changed = before["model_fingerprint"] != after["model_fingerprint"]
    assert set(changed[changed].index.get_level_values("model")) == {"tiny-b"}
    fresh = after[changed]
    assert (fresh["n_encoded"] > 0).all()
    now = table(home, "outcomes.pool_scores").set_index(["task", "model"])["pool_score"]
    moved = (now - scores).abs() > 1e-9
    assert set(moved[moved].index.get_level_values("model")) == {"tiny-b"}


def test_touched_checkpoint_with_equal_content_runs_nothing(home, upkeep):
    folder = home.parent / "models" / "tiny-b"
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)
    assert counts(upkeep(command="plan")) == {}


def test_changed_data_of_one_task_runs_that_task(home, upkeep):
    pairs = home.parent / "data" / TASKS[0] / "pairs.jsonl"
    lines = pairs.read_text().splitlines(keepends=True)
    pairs.write_text("".join(lines[:-3]))
    made = ran(upkeep())
    assert len(made["pool_items"]) == 1
    assert made["pool_items"][0].startswith(TASKS[0])
    assert {k.split("|")[1] for k in made["item_outcomes"]} == set(made["pool_items"])
    assert made["item_parameters"] == [f"{SUITE}/{TASKS[0]}"]


def test_scope_narrows_to_task_model_and_stage(home, upkeep):
    plan = upkeep("--task", TASKS[0], "--model", "tiny-a1", "--force", command="plan")
    made = ran(plan)
    assert [k.split("|")[0] for k in made["embedding_stats"]] == ["tiny-a1"]
    assert made["calibrations"] == [f"{SUITE}/{TASKS[0]}"]
    only = tiny_suite.run_json(
        "materialize", "--suite", SUITE, "--stage", "selections", "--task", TASKS[1], "--force"
    )
    assert ran(only) == {"allocations": [SUITE], "selected_items": [f"{SUITE}/{TASKS[1]}"]}
