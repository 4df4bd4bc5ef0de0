"""Names, files and checkpoints that mean harm: refused in a sentence, or text, and never run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, SUITE, command, table

ATTACKS = (
    "'; DROP TABLE ledger.partitions; --", "x' OR '1'='1", "x\"; DROP SCHEMA ledger CASCADE; --",
    "x'); ATTACH 'evil.db'; --", "x' UNION SELECT * FROM ledger.partitions --", "x/**/'", "\\'; --",
)  # fmt: skip
NAMES = (
    *ATTACKS, "", " ", ".", "..", "a/../b", "../../evil", "/etc/passwd", "~root", "C:\\evil",
    "a b", "a\nb", "a\tb", "a\rb", "a|b", "a*b", "%s%n", "{0.__class__}",
    "$(touch evil)", "`touch evil`", "a;touch evil", "-rf", "--help", "a\u202eb", "e\u0301",
    "a\u200bb",
    "\ud800", "x@dim=9e9", "a" * 300,
)  # fmt: skip
HARMLESS = ("模型", "модель-1", "file:///etc/passwd", "NULL", "1e5", "DROP-TABLE", "a--b")


def test_a_home_may_lie_anywhere(world: Any, home: Path) -> None:
    assert {" ", "模", "é"} <= set(str(home))
    assert world.first["failed_checks"] == []
    assert not any(entry["failed"] for entry in world.first["assets"].values())
    assert tiny_suite.run_json("sql", "FROM lite_leaderboard")


def test_there_are_as_many_names_as_before() -> None:
    assert len(set(NAMES)) == 35


@pytest.fixture
def unharmed(home: Path) -> Any:
    """Afterwards the ledger is as it was, and no file lies where none belongs."""
    before, files = len(table(home, "ledger.partitions")), _files(home.parent)
    yield home
    assert len(table(home, "ledger.partitions")) == before
    assert _files(home.parent) == files
    assert not Path("evil").exists()
    assert not Path("evil.db").exists()


def _files(root: Path) -> set[str]:
    """Files but those that any command writes."""
    own = ("dagster", "cache", "checkpoints")
    return {
        str(p.relative_to(root)) for p in root.rglob("*")
        if p.is_file() and not any(part in own for part in p.parts) and ".lock" not in p.name
    }  # fmt: skip


def refused(code: int, out: str, err: str) -> None:
    assert code in (1, 2)
    assert out == ""
    assert "Traceback" not in err
    assert "\n\n" not in err.strip()


def test_names_that_could_do_harm_are_refused_as_models(unharmed: Path) -> None:
    path = str(unharmed.parent / "models" / "spare-1")
    for name in NAMES:
        found = command("models", "add", "--suite", SUITE, "--path", path, "--", name)
        refused(*found)


def test_names_of_any_script_are_taken_as_they_are(home: Path) -> None:
    path = str(home.parent / "models" / "spare-1")
    for name in HARMLESS:
        code, _, err = command("models", "add", "--suite", SUITE, "--path", path, "--", name)
        assert code == 0, (name, err)
        names = [m["model"] for m in tiny_suite.run_json("models", "--suite", SUITE)]
        assert name in names
        assert command("models", "remove", "--suite", SUITE, "--", name)[0] == 0


def test_sql_in_the_names_of_a_scope_is_a_name(unharmed: Path) -> None:
    for attack in ATTACKS:
        refused(*command("plan", f"--suite={attack}"))
        refused(*command("score", CANDIDATE[0], f"--suite={attack}"))
        for option in ("task", "model", "stage"):
            refused(*command("plan", "--suite", SUITE, f"--{option}={attack}"))


# --- suite files --------------------------------------------------------------------------------


def _aliases(value: str, key: str) -> str:
    """YAML of a few lines that stands for 9 ** 10 values."""
    lines, last = [f"a: &a {value}"], "a"
    for name in "bcdefghij":
        lines.append(f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]")
        last = name
    return "\n".join([*lines, "name: bomb", f"{key}: *{last}"])


BOMBS = {
    **{key: _aliases("[x, x]", key) for key in ("tasks", "models", "k", "extends", "pool", "only")},
    "a list in itself": "name: &a [*a]\ntasks: *a",
    "a deep list": "name: " + "[" * 100_000,
    "a deep mapping": "name: " + "{a: " * 100_000,
    "a long number": "name: bomb\nk: " + "9" * 10_000,
    "an object": '!!python/object/apply:os.system ["touch evil"]',
    "many anchors": "\n".join(f"k{i}: &k{i} x" for i in range(20_000)),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_yaml_bomb_is_a_sentence_and_no_other_suite_is_lost(home: Path, text: str) -> None:
    (home / "suites" / "bomb.yaml").write_text(text)
    code, out, err = command("plan", "--suite", "bomb")
    refused(code, out, err)
    assert len(err) < 20_000
    suites = json.loads(command("suites", "--json")[1])
    assert SUITE in {suite["name"] for suite in suites}
    assert not Path("evil").exists()


# --- checkpoints --------------------------------------------------------------------------------


class _Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def _code(mark: Path) -> str:
    return f"import os\nos.mkdir({str(mark)!r})\nclass Evil: pass\n"


def _pickled_weights(folder: Path, mark: Path) -> None:
    next(folder.rglob("*.safetensors")).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": _Evil(mark)}))


def _module_of_its_own(folder: Path, mark: Path) -> None:
    (folder / "evil.py").write_text(_code(mark))
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]
    (folder / "modules.json").write_text(json.dumps(modules))


def _remote_code(folder: Path, mark: Path) -> None:
    (folder / "modules.json").unlink()
    (folder / "evil.py").write_text(_code(mark))
    names = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}
    config = {"model_type": "evil", "architectures": ["Evil"], "auto_map": names}
    (folder / "config.json").write_text(json.dumps(config))


CHECKPOINTS: list[Callable[[Path, Path], None]] = [
    _pickled_weights, _module_of_its_own, _remote_code,
]  # fmt: skip


@pytest.mark.parametrize("harm", CHECKPOINTS)
def test_code_of_a_checkpoint_is_not_run(
    home: Path, tmp_path: Path, harm: Callable[[Path, Path], None]
) -> None:
    folder, mark = tmp_path / "harm", tmp_path / "mark"
    shutil.copytree(home.parent / "models" / "spare-1", folder)
    harm(folder, mark)
    refused(*command("--quiet", "score", str(folder), "--suite", SUITE))
    assert not mark.exists()


def test_pickles_among_stored_vectors_are_not_read(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for place in home.glob("vectors/*/*/*.npy"):
        np.save(place, np.array([_Evil(mark)], dtype=object), allow_pickle=True)
    code, _, err = command("--quiet", "score", "spare-1", "--suite", SUITE)
    assert code == 2, err  # it is not registered
    words = ("score", str(home.parent / "models" / "spare-1"), "--suite", SUITE)
    assert command("--quiet", *words)[0] == 0
    tiny_suite.run_json("materialize", "--suite", SUITE, "--stage", "embeddings", "--force")
    assert not mark.exists()
