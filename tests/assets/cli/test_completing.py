"""Shell completion: real names, without the platform's imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, FishComplete, ZshComplete
from support import tiny_suite
from support.tiny_suite import CANDIDATE, REFERENCES, SUITE, TASKS

from mteblite_assets.cli.main import cli
from mteblite_assets.graph.stages import STAGE_NAMES

HEAVY = ("dagster", "duckdb", "mteb", "pandas", "torch")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the tiny suite's file alone: completion needs no more."""
    home = tmp_path / "home"
    (home / "suites").mkdir(parents=True)
    tiny_suite.write_suite(home, tiny_suite.suite_document())
    tiny_suite.use_home(monkeypatch, home)
    return home


def completed(*words: str) -> list[str]:
    *arguments, incomplete = words
    found = BashComplete(cli, {}, "mteblite", "_MTEBLITE_COMPLETE").get_completions(
        list(arguments), incomplete
    )
    return [item.value for item in found]


@pytest.mark.parametrize("words", [("plan", "--suite"), ("score", "x", "--suite"),
                                   ("export", "--suite"), ("models", "--suite"),
                                   ("verify", "x", "--suite")])  # fmt: skip
def test_suites(files: Path, words: tuple[str, ...]) -> None:
    assert completed(*words, "ti") == [SUITE]
    assert {"sample", "eng", "eng-super", SUITE} < set(completed(*words, ""))


def test_tasks_models_and_stages(files: Path) -> None:
    assert completed("plan", "--suite", SUITE, "--task", "") == sorted(TASKS)
    assert completed("plan", "--suite", "eng", "--task", "STS1")[0] == "STS12"
    models = sorted([*REFERENCES, CANDIDATE[0]])
    for words in (("plan", "--model"), ("score",), ("score", "x", "--against"), ("verify",),
                  ("models", "remove")):  # fmt: skip
        suite = ["--suite", SUITE]
        at = 2 if words[0] == "models" else 1
        assert completed(*words[:at], *suite, *words[at:], "tiny-") == models
    assert completed("plan", "--stage", "") == list(STAGE_NAMES)
    assert completed("plan", "--stage", "se") == ["selections"]


def test_registered_and_removed_models(files: Path) -> None:
    from mteblite.suites.suite_model import SuiteModel
    from mteblite_resources.catalog_files import register_model, unregister_model
    from mteblite_resources.home import Home

    register_model(Home(files), SUITE, SuiteModel.named("run-7/step-1", path="/nowhere"))
    unregister_model(Home(files), SUITE, "tiny-b", in_file=True)
    assert completed("score", "--suite", SUITE, "run") == ["run-7/step-1"]
    assert "tiny-b" not in completed("score", "--suite", SUITE, "tiny-")


def test_a_path_completes_as_a_folder(files: Path) -> None:
    found = BashComplete(cli, {}, "mteblite", "_MTEBLITE_COMPLETE").get_completions(
        ["score"], "./run"
    )
    assert [item.type for item in found] == ["dir"]


def test_broken_files_give_no_names_and_no_traceback(files: Path) -> None:
    (files / "suites" / "broken.yaml").write_text("tasks: [1,\n b: }")
    (files / "suites" / "list.yaml").write_bytes(b"\xff\xfe")
    assert completed("plan", "--suite", "broken", "--task", "") == []
    assert completed("plan", "--suite", "nix", "--model", "") == []


@pytest.mark.parametrize("shell", [BashComplete, ZshComplete, FishComplete])
def test_every_shell_gets_its_script(shell: type) -> None:
    assert "_MTEBLITE_COMPLETE" in shell(cli, {}, "mteblite", "_MTEBLITE_COMPLETE").source()


def test_completion_imports_nothing_heavy(files: Path) -> None:
    code = (
        "import sys, mteblite_assets.cli.main as m\n"
        "try: m.cli.main(prog_name='mteblite', standalone_mode=False)\n"
        "except SystemExit: pass\n"
        f"assert not {set(HEAVY)!r} & set(sys.modules), sorted(sys.modules)\n"
    )
    environment = {
        **os.environ, "PYTHONPATH": str(Path(__file__).parents[3]),
        "_MTEBLITE_COMPLETE": "bash_complete", "COMP_WORDS": f"mteblite plan --suite {SUITE} "
        "--task Tiny", "COMP_CWORD": "5",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"plain,{task}" for task in sorted(TASKS)]
