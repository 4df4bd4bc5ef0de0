"""`export` and `score --release`: what one machine gives away scores models on another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, SUITE, TASKS, command, run_json, table

EXACT = 1e-9


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A materialized home that these tests may write to, beside its data and models."""
    root = tmp_path_factory.mktemp("tiny-export")
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, root / "home")
        home = tiny_suite.write_world(root)
        assert run_json("materialize", "--suite", SUITE)["failed_checks"] == []
    yield home
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def export_home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny_suite.use_home(monkeypatch, own_home)
    return own_home


@pytest.fixture(scope="module")
def exported(own_home: Path) -> Path:
    """The release of the tiny suite."""
    folder = own_home.parent / "release"
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, own_home)
        made = run_json("export", "--suite", SUITE, "--out", str(folder))
    assert made["written"]
    assert made["n_items"] == 18
    return folder


def elsewhere(own_home: Path, tmp_path: Path) -> list[str]:
    """The tiny suite's data on another machine, as arguments of `score`."""
    shutil.copytree(own_home.parent / "data", tmp_path / "their data")
    return [a for t in TASKS for a in ("--data", f"{t}={tmp_path / 'their data' / t}")]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_release_scores_as_the_warehouse_does(
    own_home: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = elsewhere(own_home, tmp_path)
    tiny_suite.use_home(monkeypatch, tmp_path / "no home")
    model = own_home.parent / "models" / CANDIDATE[0]
    found = run_json("score", str(model), "--release", str(exported), *arguments)
    # A home that is named keeps the vectors, and nothing else.
    assert {p.name for p in (tmp_path / "no home").iterdir()} <= {"vectors", "cache"}
    tasks = table(own_home, "lite_scores.task_scores").sort_values("task")
    assert [t["task"] for t in found["tasks"]] == tasks["task"].tolist()
    for name in ("predicted", "lower", "upper"):
        values = [t[name] for t in found["tasks"]]
        assert values == pytest.approx(tasks[name].tolist(), abs=EXACT)
    assert [t["out_of_range"] for t in found["tasks"]] == tasks["out_of_range"].tolist()
    total = table(own_home, "lite_scores.suite_scores").iloc[0]
    for name in ("mean", "mean_lower", "mean_upper", "macro_mean", "macro_lower", "macro_upper"):
        assert found[name] == pytest.approx(total[name], abs=EXACT)
    assert found["model"] == CANDIDATE[0]
    assert found["release"].startswith("tiny-")
    assert found["n_texts"] == total["n_texts"]


def test_scores_for_people(own_home: Path, exported: Path, tmp_path: Path,
                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    arguments = elsewhere(own_home, tmp_path)
    for name in ("MTEBLITE_HOME", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model = own_home.parent / "models" / CANDIDATE[0]
    code, out, err = command("score", str(model), "--release", str(exported), *arguments)
    assert code == 0, err
    assert "Predicted full scores of tiny-x on suite tiny (points)" in out
    assert list((tmp_path / "here").iterdir()) == []  # no home is made of a folder in passing


def test_export_twice_gives_the_same_bytes_and_changes_nothing(
    export_home: Path, exported: Path
) -> None:
    before = files_of(exported)
    again = run_json("export", "--suite", SUITE, "--out", str(exported))
    assert not again["written"]
    run_json("export", "--suite", SUITE, "--out", str(export_home.parent / "second"))
    assert files_of(export_home.parent / "second") == before == files_of(exported)
    rows = table(export_home, "lite_scores.releases")
    assert rows["version"].tolist() == [again["version"]]
    code, out, _ = command("export", "--suite", SUITE, "--out", str(exported))
    assert code == 0
    assert "already; nothing was changed" in out


def test_a_release_that_was_deleted_is_made_again(export_home: Path, exported: Path) -> None:
    shutil.rmtree(export_home / "exports")
    run_json("export", "--suite", SUITE, "--out", str(export_home.parent / "third"))
    assert files_of(export_home.parent / "third") == files_of(exported)


def test_no_text_and_no_path_is_given_away(own_home: Path, exported: Path) -> None:
    texts: set[str] = set()
    for path in (own_home / "pools").rglob("texts.parquet"):
        texts.update(t for t in pd.read_parquet(path)["text"] if len(t) > 12)
    assert len(texts) > 100
    for name, content in files_of(exported).items():
        text = (
            pd.read_parquet(exported / name).to_csv()
            if name.endswith(".parquet")
            else content.decode()
        )
        assert not [t for t in texts if t in text], name
        assert str(own_home.parent) not in text, name


def test_the_document_has_the_published_sections(exported: Path) -> None:
    text = (exported / "SELECTION.md").read_text()
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert [h.split(". ")[1].split(" ")[0] for h in heads] == [
        "Candidate", "Per-item", "Reference", "Item", "Validation", "Chosen"
    ]  # fmt: skip
    assert "- a: kept tiny-a1, tiny-a2 (of 2)" in text
    assert "**tiny: 5 models, 4 families** (of 5 models)" in text
    cells = [[c.strip() for c in line.split("|")[1:4]] for line in text.splitlines()]
    assert ["family_lomo", "macro", "anchor/mean/anchorset"] in cells
    assert CANDIDATE[0] not in text
    manifest = json.loads((exported / "release.json").read_text())
    assert manifest["tasks"][0]["dataset_revision"]
    assert set(manifest["versions"]) == {"mteb", "mteblite"}
    assert "path" not in manifest["tasks"][0]


def test_mteb_runs_the_released_tasks(own_home: Path, exported: Path, tmp_path: Path) -> None:
    import mteb
    from support.in_memory_tasks import encoder

    from mteblite import released_tasks

    shutil.copytree(own_home.parent / "data", tmp_path / "data")
    tasks = released_tasks(exported, {t: tmp_path / "data" / t for t in TASKS})
    assert sorted(t.metadata.name for t in tasks) == sorted(TASKS)
    result = mteb.evaluate(encoder(), tasks, cache=None, show_progress_bar=False)
    assert {r.task_name for r in result.task_results} == set(TASKS)
    assert all(-1 <= r.get_score() <= 1 for r in result.task_results)


def test_data_that_changed_are_refused(
    own_home: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = elsewhere(own_home, tmp_path)
    path = tmp_path / "their data/TinySearch/corpus.jsonl"
    path.write_text(path.read_text().replace('"text": "', '"text": "new '))
    tiny_suite.use_home(monkeypatch, tmp_path / "no home")
    model = own_home.parent / "models" / CANDIDATE[0]
    code, _, err = command("score", str(model), "--release", str(exported), *arguments)
    assert code == 2
    assert "TinySearch: the text of document" in err
    assert "at revision" in err
    assert "Traceback" not in err


def test_a_new_reference_model_is_a_new_release_and_the_old_one_stays(
    export_home: Path, exported: Path, tmp_path: Path
) -> None:
    before = files_of(exported)
    old = json.loads((exported / "release.json").read_text())["version"]
    added = ("models", "add", "spare-1", "--suite", SUITE, "--role", "reference", "--family", "s")
    assert command(*added, "--path", str(export_home.parent / "models/spare-1"))[0] == 0
    code, _, err = command("export", "--suite", SUITE, "--out", str(exported))
    assert code == 0
    assert "warning: the lite suite is not up to date" in err
    run_json("materialize", "--suite", SUITE)
    (export_home / "mteblite.duckdb").unlink()  # the record of releases does not hang on it
    code, _, err = command("export", "--suite", SUITE, "--out", str(exported))
    assert code == 2
    assert f"holds release {old}, and this is tiny-" in err
    new = run_json("export", "--suite", SUITE, "--out", str(tmp_path / "new"))
    assert new["version"] != old
    assert files_of(exported) == before
    rows = table(export_home, "lite_scores.releases").sort_values("number")
    assert rows["version"].tolist() == [old, new["version"]]
    assert {p.name for p in (export_home / "exports" / SUITE).iterdir()} == set(rows["version"])
    assert "spare-1" in (tmp_path / "new/SELECTION.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "--suite", "nope", "--out", "x"), "no suite 'nope'"),
        (("export", "--suite", "sample", "--out", "x"), "has no lite selection yet"),
        (("export", "--suite", SUITE), "--out"),
        (("score", "m"), "needs --suite NAME, or --release FOLDER"),
        (("score", "m", "--suite", SUITE, "--data", "a=b"), "needs --suite NAME, or --release"),
        (
            ("score", "m", "--suite", SUITE, "--release", "x"),
            "neither --suite nor --family",
        ),
        (("score", "m", "--release", "nowhere"), "no folder nowhere"),
    ],
)
def test_bad_usage(export_home: Path, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = command(*arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err + out


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("./nothing", [], "no folder './nothing'"),
        ("package:nothing", [], "nothing"),
        ("package:wordllama-64", [], "give the folder of its files with `--data TinySTS=FOLDER`"),
        ("package:wordllama-64", ["Other=."], "no own data of that name; it has TinySTS"),
        ("package:wordllama-64", ["TinySTS"], "expected TASK=FOLDER"),
    ],
)
def test_bad_models_and_data(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, data: list[str],
    message: str,
) -> None:  # fmt: skip
    tiny_suite.use_home(monkeypatch, tmp_path / "no home")
    named = [a for d in data for a in ("--data", d)]
    code, _, err = command("score", model, "--release", str(exported), *named)
    assert code == 2, err
    assert message in err
    assert "Traceback" not in err
