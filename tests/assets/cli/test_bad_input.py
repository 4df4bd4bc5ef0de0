"""Bad input: the right exit code, one paragraph that names the thing, and nothing lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import tiny_suite
from support.tiny_suite import command

MODEL = {"name": "package:glove-50d", "family": "glove"}
SOUND: dict[str, Any] = {
    "name": "mine",
    "tasks": [{"task": "LeeDocSTS"}],
    "k": 5,
    "models": [MODEL],
    "reference_scores": ["run"],
}


def refused(*arguments: str, names: tuple[str, ...], code: int = 2) -> str:
    """Run a command that must be refused; check code and message and return stderr."""
    found, out, err = command("--quiet", *arguments)
    assert found == code, f"exit {found}: {out}{err}"
    assert out == ""
    assert "Traceback" not in err
    assert "\n\n" not in err.strip(), "more than one paragraph"
    for name in names:
        assert name in err
    return err


def write(home: Path, text: str = "", **changes: Any) -> None:
    """Write the user's suite file `mine.yaml`."""
    document = yaml.safe_dump({**SOUND, **changes}, sort_keys=False)
    (home / "suites" / "mine.yaml").write_text(text or document)


# --- suite files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"per_items": {}}, ("`per_items`", "did you mean `per_item`?", "set_metric")),
        ({"pool": {"max_itmes": 9}}, ("`pool.max_itmes`", "did you mean `max_items`?", "seed")),
        ({"tasks": [{"task": "LeeDocSTS", "hf_subset": ["x"]}]},
         ("`tasks.0.hf_subset`", "did you mean `hf_subsets`?")),
        ({"models": [{**MODEL, "famly": "x"}]}, ("`models.0.famly`", "did you mean `family`?")),
        ({"k": 1}, ("`k`", "greater than or equal to 2", "got 1")),
        ({"k": "many"}, ("`k`", "got 'many'")),
        ({"tasks": [{"task": "LeeDocSTS", "k": 0}]}, ("`tasks.0.k`", "2", "got 0")),
        ({"pool": {"max_items": 1}}, ("`pool.max_items`", "got 1")),
        ({"models": [{"name": "package:glove-50d"}]}, ("`models.0.family`", "missing")),
        ({"models": [{**MODEL, "family": ""}]}, ("`models.0.family`",)),
        ({"models": [MODEL, MODEL]}, ("'package:glove-50d'", "listed twice")),
        ({"models": [{**MODEL, "role": "judge"}]}, ("`models.0.role`", "'candidate'", "'judge'")),
        ({"models": [{"name": "package:glov", "family": "glove"}]},
         ("`models.0`", "'glov'", "glove-50d")),
        ({"models": [{"name": "a|b", "family": "a"}]}, ("`models.0.name`", "'a|b'", "no '|'")),
        ({"models": [{"name": "a..b", "family": "a"}]}, ("`models.0.name`", "'a..b'", "no '..'")),
        ({"tasks": ["STS17", "STS17"]}, ("'STS17'", "listed twice")),
        ({"tasks": []}, ("`tasks`", "`benchmark`")),
        ({"tasks": [{"task": "Mine", "type": "STS"}]}, ("`tasks.0`", "`path` and `type`")),
        ({"tasks": [{"task": "Mine", "type": "Regression", "path": "x"}]},
         ("`tasks.0.type`", "BitextMining", "'Regression'")),
        ({"per_item": {"selection": "anchr"}},
         ("`per_item.selection`", "'anchr'", "did you mean `anchor`?", "fisher")),
        ({"per_item": {"estimator": "meen"}},
         ("`per_item.estimator`", "'meen'", "did you mean `mean`?", "pirt")),
        ({"set_metric": {"selection": "dice"}},
         ("`set_metric.selection`", "'dice'", "anchorset")),
        ({"reference_scores": ["offical"]}, ("`reference_scores.0`", "'official'", "'offical'")),
        ({"name": "My Suite"}, ("`name`", "'My Suite'")),
        ({"name": "sample"}, ("'sample'", "sample.yaml", "choose another")),
    ],
)  # fmt: skip
def test_suite_file_is_refused_when_it_is_read(
    bare_home: Path, changes: dict[str, Any], names: tuple[str, ...]
) -> None:
    write(bare_home, **changes)
    refused("plan", "--suite", "mine", names=("mine.yaml", *names))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tasks: [1,\n b: }", ("YAML", "line 2")),
        ("- a\n- b\n", ("mapping", "got list", "reference_scores")),
        ("# nothing\n", ("an empty file",)),
        ("name: \x00", ("YAML",)),
    ],
)
def test_file_that_is_no_suite(bare_home: Path, text: str, names: tuple[str, ...]) -> None:
    write(bare_home, text)
    refused("plan", "--suite", "mine", names=("mine.yaml", *names))


def test_file_that_is_no_text(bare_home: Path) -> None:
    (bare_home / "suites" / "mine.yaml").write_bytes(b"\xff\xfe\x00name")
    refused("plan", "--suite", "mine", names=("mine.yaml", "YAML"))


def test_broken_file_leaves_the_other_suites(bare_home: Path) -> None:
    write(bare_home, k=1)
    (bare_home / "suites" / "other.yaml").write_text(yaml.safe_dump({**SOUND, "name": "other"}))
    code, out, err = command("suites", "--json")
    assert code == 0
    names = [s["name"] for s in yaml.safe_load(out)]
    assert names[-2:] == ["sample", "other"]
    assert "mine" not in names
    assert err.startswith("warning: mine.yaml: `k`")


def test_name_used_twice(bare_home: Path) -> None:
    write(bare_home)
    (bare_home / "suites" / "twin.yaml").write_text(yaml.safe_dump(SOUND))
    refused("plan", "--suite", "twin", names=("twin.yaml", "'mine'", "mine.yaml"))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"tasks": [{"task": "STSBenchmrk"}]},
         ("tasks.0", "'STSBenchmrk'", "did you mean STSBenchmark")),
        ({"tasks": [{"task": "STS17", "hf_subsets": ["ar-xx"]}]},
         ("tasks.0", "STS17", "'ar-xx'", "ar-ar, en-ar")),
        ({"tasks": ["STS12", {"task": "STS17", "split": "tset"}]},
         ("tasks.1", "STS17", "'tset'", "splits: test")),
        ({"tasks": ["CQADupstackRetrieval"]}, ("CQADupstackRetrieval", "CQADupstackTexRetrieval")),
        ({"benchmark": "MTEB(eng, v3)"}, ("benchmark", "'MTEB(eng, v3)'", "MTEB(eng, v2)")),
        ({"tasks": [{"task": "Mine", "type": "STS", "path": "nowhere"}]},
         ("tasks.0", "Mine", "nowhere")),
        ({"tasks": [{"task": "STS17", "type": "STS", "path": "nowhere"}]},
         ("tasks.0", "STS17", "another name")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["plan", "materialize", "tasks"])
def test_task_that_mteb_does_not_have(
    bare_home: Path, verb: str, changes: dict[str, Any], names: tuple[str, ...]
) -> None:
    write(bare_home, **changes)
    refused(verb, "--suite", "mine", names=("mine.yaml", *names))


# --- names on the command line -----------------------------------------------------------------


@pytest.mark.parametrize("verb", ["plan", "materialize", "status", "tasks", "models", "report"])
def test_unknown_suite(home: Path, verb: str) -> None:
    refused(verb, "--suite", "nix", names=("'nix'", "sample", "tiny"))


@pytest.mark.parametrize("verb", ["plan", "materialize"])
@pytest.mark.parametrize(
    ("option", "known"),
    [("--task", "TinySTS"), ("--model", "tiny-b"), ("--stage", "item_parameters")],
)
def test_unknown_task_model_or_stage(home: Path, verb: str, option: str, known: str) -> None:
    refused(verb, "--suite", "tiny", option, "Nix", names=("'Nix'", known))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("frobnicate",), ("frobnicate",)),
        (("plan",), ("--suite",)),
        (("models",), ("--suite",)),
        (("models", "add", "x", "--suite", "tiny", "--role", "judge"), ("judge", "candidate")),
        (("dev", "--port", "many"), ("many", "--port")),
    ],
)
def test_bad_usage(home: Path, arguments: tuple[str, ...], names: tuple[str, ...]) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert all(name in err for name in names)
    assert "Traceback" not in err


# --- models ------------------------------------------------------------------------------------


@pytest.fixture
def untouched(home: Path) -> Any:
    """The registered models must be the same after the test."""
    before = command("models", "--suite", "tiny", "--json")[1]
    yield home
    assert command("models", "--suite", "tiny", "--json")[1] == before


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("a|b",), ("'a|b'", "no '|'")),
        (("a..b",), ("'a..b'", "no '..'")),
        (("a b",), ("'a b'", "no spaces")),
        (("",), ("name",)),
        (("x@half",), ("'x@half'", "@dim=<number>")),
        (("x@dim=0",), ("'x@dim=0'", "at least 1")),
        (("package:nope",), ("'nope'", "glove-50d")),
        (("package:glove-50d", "--path", "."), ("package:glove-50d", "path")),
        (("package:glove-50d", "--truncate-dim", "0"), ("truncate_dim", "1")),
        (("package:glove-50d", "--prompt", "query"), ("'query'", "KEY=TEXT")),
        (("package:glove-50d", "--prompt", "=x"), ("'=x'", "KEY=TEXT")),
        (("package:glove-50d", "--role", "reference"), ("package:glove-50d", "--family")),
    ],
)
def test_model_that_cannot_be(
    untouched: Path, arguments: tuple[str, ...], names: tuple[str, ...]
) -> None:
    refused("models", "add", *arguments, "--suite", "tiny", names=names)


def test_model_folder_that_is_missing(untouched: Path, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    refused("models", "add", "m", "--suite", "tiny", "--path", gone, names=("'m'", gone))


def test_model_folder_without_weights(untouched: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    refused(
        "models", "add", "m", "--suite", "tiny", "--path", str(tmp_path),
        names=("'m'", str(tmp_path), "no weights", "safetensors"),
    )  # fmt: skip


def test_model_folder_cut_short(untouched: Path, tmp_path: Path) -> None:
    whole = next((untouched.parent / "models" / "tiny-b").rglob("*.safetensors"))
    (tmp_path / "model.safetensors").write_bytes(whole.read_bytes()[:-100])
    refused(
        "models", "add", "m", "--suite", "tiny", "--path", str(tmp_path),
        names=("'m'", "cut short or damaged"),
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["score", "add"])
def test_a_refused_checkpoint_is_not_registered_and_nothing_is_stored(
    untouched: Path, tmp_path: Path, verb: str
) -> None:
    sound = next((untouched.parent / "models" / "tiny-b").rglob("modules.json")).parent
    folder = shutil.copytree(sound, tmp_path / "mine")
    (folder / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\nsize 1\n")
    stored = sorted((untouched / "vectors").iterdir())
    arguments = {
        "score": ("score", str(folder), "--suite", "tiny"),
        "add": ("models", "add", "mine", "--suite", "tiny", "--path", str(folder)),
    }
    refused(*arguments[verb], names=("'mine'", "tokenizer.json", "git lfs pull"))
    assert sorted((untouched / "vectors").iterdir()) == stored


def test_removing_a_model_that_is_not_there(untouched: Path) -> None:
    refused("models", "remove", "nope", "--suite", "tiny", names=("'nope'", "tiny-b"))


# --- score -------------------------------------------------------------------------------------


def test_score_before_there_is_a_lite_suite(bare_home: Path) -> None:
    refused(
        "score", "package:glove-50d", "--suite", "sample",
        names=("'sample'", "mteblite materialize --suite sample"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("./gone", ("'./gone'", "weights")),
        ("package:nope", ("'nope'", "glove-50d")),
        ("a|b", ("'a|b'", "no '|'")),
    ],
)
def test_score_of_what_is_no_model(untouched: Path, model: str, names: tuple[str, ...]) -> None:
    refused("score", model, "--suite", "tiny", names=names)


def test_score_of_a_folder_without_weights(untouched: Path, tmp_path: Path) -> None:
    (tmp_path / "step-7").mkdir()
    refused("score", str(tmp_path / "step-7"), "--suite", "tiny", names=("step-7", "no weights"))


# --- sql ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELEC 1", ("syntax error", "LINE 1: SELEC 1")),
        ("SELECT * FROM nix", ("nix", "does not exist")),
        ("DELETE FROM lite_scores.task_scores", ("DELETE", "read-only")),
        ("CREATE TABLE t AS SELECT 1", ("read-only",)),
        ("DROP TABLE lite_scores.task_scores", ("read-only",)),
    ],
)
def test_sql_that_is_wrong_or_would_write(home: Path, query: str, names: tuple[str, ...]) -> None:
    before = (home / "mteblite.duckdb").read_bytes()
    refused("sql", query, names=names)
    assert (home / "mteblite.duckdb").read_bytes() == before


def test_sql_before_there_is_a_warehouse(bare_home: Path) -> None:
    refused("sql", "SELECT 1", names=("no warehouse", "materialize"))


# --- reference scores --------------------------------------------------------------------------


def own_sts(home: Path, **changes: Any) -> None:
    """A suite over the tiny STS task and one model."""
    tiny_suite.write_data(home.parent / "data")
    tiny_suite.write_model(home.parent / "models" / "m", "m", 0.5)
    document = {
        **SOUND,
        "tasks": [{"task": "TinySTS", "type": "STS", "path": "data/TinySTS"}],
        "models": [{"name": "m", "family": "m", "path": "models/m"}],
        **changes,
    }
    write(home, yaml.safe_dump(document))


def test_official_table_that_is_not_there(bare_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTEBLITE_OFFICIAL_SCORES", str(bare_home / "gone.parquet"))
    own_sts(bare_home, reference_scores=["official"])
    code, _, err = command("--quiet", "materialize", "--suite", "mine", "--stage", "suites",
                           "--stage", "reference_scores")  # fmt: skip
    assert code == 1
    assert "gone.parquet" in err
    assert "Traceback" not in err


# --- misspelled names --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "guess"),
    [
        (("plan", "--suite", "tinny"), "did you mean tiny? "),
        (("plan", "--suite", "tiny", "--task", "TinySST"), "did you mean TinySTS"),
        (("plan", "--suite", "tiny", "--model", "tiny_b"), "did you mean tiny-b"),
        (("plan", "--suite", "tiny", "--stage", "embedings"), "did you mean embeddings? "),
        (("score", "tiny-b+nrom", "--suite", "tiny"), "'+nrom', which is no variant: did you "
                                                      "mean +norm?"),
        (("models", "add", "b+no-prompt", "--suite", "tiny"), "did you mean +no-prompts?"),
    ],
)  # fmt: skip
def test_misspelled_name_gets_a_guess(home: Path, arguments: tuple[str, ...], guess: str) -> None:
    refused(*arguments, names=(guess,))


def test_stage_without_its_inputs_names_the_command_that_makes_them(bare_home: Path) -> None:
    own_sts(bare_home)
    code, _, err = command("--quiet", "materialize", "--suite", "mine", "--stage", "outcomes")
    assert code == 1
    assert "`mteblite materialize --suite mine` without --stage makes what is missing first" in err


@pytest.mark.parametrize("file", ["sample.yaml", "mine.yaml"])
@pytest.mark.parametrize("verb", ["plan", "status", "models", "tasks"])
def test_file_with_the_name_of_a_packaged_suite_is_said(
    bare_home: Path, verb: str, file: str
) -> None:
    (bare_home / "suites" / file).write_text(yaml.safe_dump({**SOUND, "name": "eng"}))
    code, _, err = command(verb, "--suite", "eng")
    assert code == 0
    assert err.count(f"warning: {file}: the name 'eng' is taken by the packaged eng.yaml") == 1


def test_plan_says_which_official_scores_are_missing(bare_home: Path) -> None:
    from mteblite_resources.home import Home
    from mteblite_resources.workbench import Workbench

    (bare_home / "suites" / "part.yaml").write_text(
        "name: part\nextends: eng-super\nonly: [STS12, BIOSSES]\nreference_scores: [official]\n"
        "models: [{name: a/b, family: f}, {name: c/d, family: g}]\n"
    )
    _, _, err = command("plan", "--suite", "part")
    assert "note: the official scores of this suite have not been read yet" in err
    bench = Workbench(Home(bare_home))
    pools = {e.task: e.pool_task for e in bench.catalog().suite("part").tasks}
    with bench.warehouse.session() as connection:
        for task, model in (("STS12", "a/b"), ("BIOSSES", "a/b"), ("BIOSSES", "c/d")):
            connection.execute(
                "INSERT INTO reference_scores.public_scores (pool_task, model, main_score, refused)"
                " VALUES (?, ?, 0.5, '')",
                [pools[task], model],
            )
    bench.warehouse.publish()
    _, _, err = command("plan", "--suite", "part")
    assert "1 of 2 reference models have no official score" in err
    assert "c/d on STS12" in err
