"""What ends a command is one sentence that names the real place, and the right exit code."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support import tiny_suite
from support.tiny_suite import SUITE, command

from mteblite_assets.cli.endings import STOPPED, ending_of
from mteblite_resources.database.duckdb_files import WarehouseBusyError
from mteblite_resources.home import Home, HomeError

NOBODY = 65534


def os_error(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, STOPPED),
        (RuntimeError("Query interrupted"), 130, STOPPED),
        (ValueError("k is 1"), 2, "error: k is 1"),
        (ModuleNotFoundError("no", name="dagster_dbt.x"), 2, "mteblite[platform]"),
        (ModuleNotFoundError("no", name="onnxruntime"), 2, "'onnxruntime' is not installed"),
        (os_error(errno.EACCES, "/out/x"), 2, "/out/x: Permission denied"),
        (os_error(errno.EROFS, "/out/x"), 2, "/out/x: Read-only file system"),
        (os_error(errno.ENOSPC, "/out/x"), 1, "/out/x: No space left on device: free space"),
        (duckdb.IOException("IO Error: no\nmore"), 1, "IO Error: no; what was finished is stored"),
    ],
)
def test_ending(error: BaseException, code: int, words: str) -> None:
    found = ending_of(error)
    assert found is not None
    assert found[1] == code
    assert words in found[0]
    assert "\n" not in found[0]


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_the_home_is_blamed_only_where_it_is_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTEBLITE_HOME", str(tmp_path / "home"))
    assert "MTEBLITE_HOME" not in ending_of(os_error(errno.EACCES, "/out/x"))[0]
    assert str(tmp_path / "home") in ending_of(os_error(errno.ENOSPC))[0]


def test_a_bug_keeps_its_traceback_and_a_cause_explains_what_wraps_it() -> None:
    assert ending_of(raised(KeyError("k"))) is None
    assert ending_of(ModuleNotFoundError("no", name="mteblite.gone")) is None
    assert ending_of(raised(RuntimeError("of a library"))) is None
    wrapped = raised(TypeError("wrapped"), WarehouseBusyError("held"))
    assert ending_of(wrapped) is None  # raised by this test, no module of ours
    assert ending_of(raised(TypeError("wrapped"), ValueError("the reason"))) == (
        "error: the reason", 2,
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["suites", "status", "plan", "sql", "materialize"])
@pytest.mark.parametrize("below", ["", "deeper/home"])
def test_a_home_that_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, below: str
) -> None:
    (tmp_path / "file").write_text("")
    tiny_suite.use_home(monkeypatch, tmp_path / "file" / below)
    arguments = {"suites": (), "sql": ("SELECT 1",)}.get(verb, ("--suite", "sample"))
    code, out, err = command(verb, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: MTEBLITE_HOME names ")
    assert f"{tmp_path}/file is a file" in err
    assert err.count("\n") == 1


@pytest.fixture
def read_only(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The materialized home for a user who may only read it."""
    folder = built.parent
    rights = [(p, p.stat().st_mode) for p in (folder, *folder.parents) if p.owner() == "root"]
    user = os.geteuid()
    tiny_suite.use_home(monkeypatch, built)
    if user == 0:  # root may write everywhere
        opened = [(p, mode) for p, mode in rights if not mode & 0o005]
        for place, mode in opened:
            place.chmod(mode | 0o055)
        os.seteuid(NOBODY)
    else:
        opened = [(p, p.stat().st_mode) for p in (built, *built.rglob("*")) if p.is_dir()]
        for place, mode in opened:
            place.chmod(mode & ~0o222)
    yield built
    os.seteuid(user)
    for place, mode in opened:
        place.chmod(mode)


def test_a_home_that_may_only_be_read_can_be_read(read_only: Path) -> None:
    state = {p: p.stat().st_mtime_ns for p in read_only.rglob("*")}
    for arguments in (
        ("suites",),
        ("tasks", "--suite", SUITE),
        ("models", "--suite", SUITE),
        ("status", "--suite", SUITE),
        ("plan", "--suite", SUITE),
        ("sql", "SELECT count(*) FROM lite_scores.task_scores"),
    ):
        code, out, err = command(*arguments)
        assert code == 0, err
        assert out
        assert "error" not in err
    counts = tiny_suite.run_json("status", "--suite", SUITE)
    assert {row["missing"] for row in counts} == {0}
    assert {p: p.stat().st_mtime_ns for p in read_only.rglob("*")} == state


@pytest.mark.parametrize(
    "arguments", [("materialize",), ("report",), ("score", "tiny-x"), ("models", "remove", "x")]
)
def test_a_home_that_may_only_be_read_cannot_be_changed(
    read_only: Path, arguments: tuple[str, ...]
) -> None:
    code, out, err = command(*arguments, "--suite", SUITE)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: MTEBLITE_HOME names {read_only}, which cannot be written")
    assert err.count("\n") == 1


def test_export_blames_its_own_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mteblite.releases.release_files as release_files

    def refuse(source: Path, out: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(out))

    monkeypatch.setattr(release_files.shutil, "copytree", refuse)
    out = home.parent / "elsewhere" / "release"
    code, _, err = command("--quiet", "export", "--suite", SUITE, "--out", str(out))
    assert code == 2
    assert "elsewhere" in err
    assert "MTEBLITE_HOME" not in err


def test_places_of_variables_that_are_not_there_are_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CHECKPOINTS", "LOCAL_RESULTS", "OFFICIAL_SCORES"):
        monkeypatch.setenv(f"MTEBLITE_{name}", f"/nope/{name}")
    for verb in ("plan", "status", "materialize"):
        code, _, err = command("--quiet", verb, "--suite", SUITE, "--stage", "suites") if (
            verb == "materialize"
        ) else command(verb, "--suite", SUITE)  # fmt: skip
        assert code == 0, err
        for name in ("CHECKPOINTS", "LOCAL_RESULTS", "OFFICIAL_SCORES"):
            assert f"note: MTEBLITE_{name} names /nope/{name}, which does not exist" in err
    assert not Path("/nope").exists()


def test_full_disk_while_the_home_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "home"))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(HomeError, match=r"No space left on device.*free space"):
        Home(tmp_path / "home").prepare()
