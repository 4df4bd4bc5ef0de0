"""What is installed is what is needed: the wheel, without and with its extras, outside the tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support import tiny_suite

ROOT = Path(__file__).parents[1]
BESIDE = {"pyproject.toml", "__pycache__"}


def run(command: list[Any], folder: Path, timeout: float = 1200, **variables: str) -> str:
    """Run a command outside the repository and return what it prints on stdout."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MTEBLITE_HOME")}
    kept.pop("DAGSTER_HOME", None)
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env={**kept, **variables},
        capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the tracked files, so that nothing left in the tree helps."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "mteblite*", "dbt_reports", "pyproject.toml",
         "README.md", "LICENSE", "NOTICE"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout: which files are the project's is not known")
    for name in filter(None, listed.stdout.split("\0")):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, copy], copy)
    (found,) = out.glob("mteblite-*.whl")
    return found


def test_the_wheel_holds_every_file_that_the_code_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    for folder in ("mteblite", "mteblite_resources", "mteblite_assets", "dbt_reports"):
        needed = {
            p.relative_to(ROOT).as_posix()
            for p in (ROOT / folder).rglob("*")
            if p.is_file() and not BESIDE & set(p.parts) and p.suffix in (
                ".py", ".yaml", ".yml", ".json", ".sql", ".md", ".typed")
        }  # fmt: skip
        assert needed - held == set()


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and no extra; its scripts' folder."""
    folder = tmp_path_factory.mktemp("bare")
    run([sys.executable, "-m", "venv", folder], folder)
    install(folder, str(wheel))
    return folder / "bin"


def install(environment: Path, what: str) -> None:
    """Install into an environment, at the versions that the project is tested with."""
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
    run([*pip, "--constraint", ROOT / "constraints.txt", what], environment)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and models of the tiny suite, and a release of it in the folder `release`."""
    root = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, root / "home")
        tiny_suite.write_world(root)
        tiny_suite.run_json("materialize", "--suite", tiny_suite.SUITE)
        folder = str(root / "release")
        tiny_suite.run_json("export", "--suite", tiny_suite.SUITE, "--out", folder)
        code, out, err = tiny_suite.command(
            "--quiet", "score", str(root / "models/spare-1"), "--suite", tiny_suite.SUITE, "--json"
        )
        assert code == 0, err
        (root / "score.json").write_text(out)
    return root


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_bare_library_scores_a_release(bare: Path, world: Path, tmp_path: Path) -> None:
    absent = "import importlib.util as u; print([n for n in {!r} if u.find_spec(n)])"
    names = ("dagster", "dagster_dbt", "dagster_webserver", "duckdb", "dbt", "pytest")
    assert run([bare / "python", "-c", absent.format(names)], tmp_path) == "[]\n"
    data = [part for t in tiny_suite.TASKS for part in ("--data", f"{t}={world}/data/{t}")]
    model, folder = world / "models/spare-1", world / "release"
    printed = run(
        [bare / "mteblite", "score", model, "--release", folder, *data, "--json"], tmp_path
    )
    score, expected = json.loads(printed), json.loads((world / "score.json").read_text())
    assert score["macro_mean"] == pytest.approx(expected["macro_mean"], abs=1e-6)
    assert score["macro_lower"] == pytest.approx(expected["macro_lower"], abs=1e-6)
    program = f"""
import mteblite
release = mteblite.load_release({str(folder)!r})
data = {{task: {str(world)!r} + "/data/" + task for task in {tiny_suite.TASKS!r}}}
print(mteblite.score({str(model)!r}, release, data=data).value)
"""
    by_api = float(run([bare / "python", "-c", program], tmp_path).splitlines()[-1])
    assert by_api == pytest.approx(score[score["headline"]], abs=1e-9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_platform_command_names_the_extra(bare: Path, tmp_path: Path) -> None:
    for command in (["quickstart"], ["status", "--suite", "sample"], ["sql", "SELECT 1"], ["dev"]):
        done = subprocess.run(
            [str(bare / "mteblite"), *command], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [
            "error: this command works on a home, which needs the platform: "
            "pip install 'mteblite[platform]'"
        ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_installed_platform_runs_the_quickstart(
    bare: Path, wheel: Path, tmp_path: Path
) -> None:
    install(bare.parent, f"{wheel}[platform,sample]")
    printed = run([bare / "mteblite", "quickstart"], tmp_path, timeout=3000)
    assert "Lite leaderboard of suite sample" in printed
    rows = json.loads(run([bare / "mteblite", "sql", "FROM lite_leaderboard", "--json"], tmp_path))
    assert len(rows) == 18
