"""Who may import what, read from the source: floors, folders, Dagster, heavy libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mteblite.task_types.registry import type_names
from mteblite_assets.graph.stages import STAGE_NAMES

ROOT = Path(__file__).parents[1]
FLOORS = ("mteblite", "mteblite_resources", "mteblite_assets")
"""From the bottom up: arrows run down only."""
FOLDERS = (
    "suites", "pools", "outcomes", "task_types", "reference_scores", "item_parameters",
    "selections", "calibrations", "validation", "lite_scores", "sample", "vectors", "models",
    "tasks", "releases",
)  # fmt: skip
"""Folders of the library: each imports only those before it."""
STAGES = STAGE_NAMES[:-1]
"""`dbt_reports` is SQL."""

PLATFORM = ("dagster", "dagster_dbt", "dagster_webserver", "duckdb", "dbt")
HEAVY = {"mteb", "torch", "transformers", "sentence_transformers", "datasets"}
AT_LOAD = {"sklearn", "scipy", "huggingface_hub", "dbt"}
SPEAKS_DAGSTER = {"assets", "checks", "partitions", "definitions", "sensors"}
OUTSIDE = {"sample", "vectors", "models", "tasks", "releases"}
"""Folders of the library that touch mteb, models or files."""
READS_MTEB = {"data", "own_data", "own_files"}
"""Modules of task types that touch mteb's task objects and data sets, inside functions."""
TORCH_PRODUCTS = "mteblite/task_types/summarization/outcomes.py"
"""Orders near-ties by the last digit of torch's float32 products, as mteb does."""
SAMPLE = ("mteblite", "sample")
"""Its tasks say what types they have, as those of mteb do."""
DERIVE_FROM_MTEB = {
    "mteblite/models/stored_encoder.py",
    "mteblite/sample/tasks/tasks.py",
    "mteblite/sample/tasks/dataset_shapes.py",
}


def modules() -> list[Path]:
    """All modules of the three packages."""
    found = [p for floor in FLOORS for p in (ROOT / floor).rglob("*.py")]
    return sorted(p.relative_to(ROOT) for p in found)


def imports(path: Path, *, at_load: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports; with `at_load` only those that importing it runs."""
    tree = ast.parse((ROOT / path).read_text())
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if at_load and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if _is_type_checking(node):
            assert isinstance(node, ast.If)
            waiting += node.orelse if at_load else ast.iter_child_nodes(node)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            waiting += ast.iter_child_nodes(node)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def tops(names: Iterator[str]) -> set[str]:
    """First parts of module names."""
    return {name.split(".")[0] for name in names}


def folder_of(module: str) -> str | None:
    """The folder of the library that a module name points into, None elsewhere."""
    floor, _, rest = module.partition(".")
    folder = rest.partition(".")[0]
    return folder if floor == "mteblite" and folder in FOLDERS else None


def speaks_dagster(path: Path) -> bool:
    """Whether CONTRIBUTING lets a module import Dagster."""
    if path.parts[0] != "mteblite_assets":
        return path.as_posix() == "mteblite_resources/resources.py"
    return path.stem in SPEAKS_DAGSTER or path.parts[1] in ("graph", "cli")


def stage_of(path: Path) -> str | None:
    """The stage a module of the platform belongs to, None outside the stages."""
    return path.parts[1] if path.parts[0] == "mteblite_assets" and path.parts[1] in STAGES else None


@pytest.mark.parametrize("floor", FLOORS)
def test_no_floor_imports_one_above_it(floor: str) -> None:
    above = set(FLOORS[FLOORS.index(floor) + 1 :])
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if p.parts[0] == floor and (found := tops(imports(p)) & above)
    }
    assert wrong == {}


def test_every_folder_of_the_library_has_its_place() -> None:
    there = {p.name for p in (ROOT / "mteblite").iterdir() if (p / "__init__.py").is_file()}
    assert there == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_the_library_imports_only_folders_before_it(folder: str) -> None:
    later = set(FOLDERS[FOLDERS.index(folder) + 1 :])
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if p.parts[:2] == ("mteblite", folder)
        and (found := {n for n in imports(p) if folder_of(n) in later})
    }
    assert wrong == {}


def test_what_all_folders_share_imports_none_of_them() -> None:
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if p.parts[0] == "mteblite" and len(p.parts) == 2 and p.name != "__init__.py"
        and (found := {n for n in imports(p) if folder_of(n)})
    }  # fmt: skip
    assert wrong == {}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_only_stages_above_it(stage: str) -> None:
    below = set(STAGES[STAGES.index(stage) + 1 :])
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if stage_of(p) == stage
        and (
            found := {
                name
                for name in imports(p)
                if name.startswith("mteblite_assets.") and name.split(".")[1] in below
            }
        )
    }
    assert wrong == {}


def test_the_library_runs_where_the_platform_cannot_be_imported() -> None:
    names = [".".join(p.with_suffix("").parts) for p in modules() if p.parts[0] == "mteblite"]
    program = f"""
import importlib, sys
for name in {PLATFORM!r}:
    sys.modules[name] = None
for name in {names!r}:
    importlib.import_module(name.removesuffix(".__init__"))
import mteblite
assert all(getattr(mteblite, name) for name in mteblite.__all__)
from mteblite_assets.cli.main import cli
from mteblite_assets.cli.release_scoring import score_from_release
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_importing_the_library_costs_nearly_nothing() -> None:
    program = """
import sys, time
import numpy, pandas
before, started = set(sys.modules), time.process_time()
import mteblite
print(time.process_time() - started)
print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seconds, loaded = done.stdout.splitlines()
    assert not set(loaded.split()) & {*HEAVY, *PLATFORM}
    # 0.001 CPU seconds when written: the bound says that nothing is imported.
    assert float(seconds) < 0.3


def test_dagster_is_spoken_only_where_it_may_be() -> None:
    wrong = [
        str(p)
        for p in modules()
        if tops(imports(p)) & {"dagster", "dagster_dbt"} and not speaks_dagster(p)
    ]
    assert wrong == []


def test_ruff_lets_no_more_modules_speak_dagster() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "dagster" in settings["flake8-tidy-imports"]["banned-api"]
    allowed = {g for g, rules in settings["per-file-ignores"].items() if "TID251" in rules}
    assert {g for g in allowed if g.startswith("mteblite")} == {
        "mteblite_assets/**/{assets,checks,partitions,definitions,sensors}.py",
        "mteblite_assets/graph/*.py",
        "mteblite_assets/cli/*.py",
        "mteblite_resources/resources.py",
    }


@pytest.mark.parametrize("folder", sorted(set(FOLDERS) - OUTSIDE))
def test_the_science_imports_neither_mteb_nor_files_nor_networks(folder: str) -> None:
    forbidden = HEAVY | {"subprocess", "requests", "huggingface_hub"}
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if p.parts[:2] == ("mteblite", folder)
        and (found := tops(imports(p)) & forbidden)
        and (str(p), found) != (TORCH_PRODUCTS, {"torch"})
        and not (folder == "task_types" and p.stem in READS_MTEB and found <= {"mteb", "datasets"})
    }
    assert wrong == {}


def names_types(text: str) -> bool:
    """Whether a text holds the name of a task type as a word."""
    return re.search(rf"\b({'|'.join(type_names())})\b", text) is not None


def test_only_the_folder_of_task_types_names_one() -> None:
    outside = [p for p in modules() if p.parts[:2] not in (("mteblite", "task_types"), SAMPLE)]
    wrong = {
        f"{p}:{node.lineno}"
        for p in outside
        for node in ast.walk(ast.parse((ROOT / p).read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and names_types(node.value)
    }
    sql = [q for floor in (*FLOORS, "dbt_reports") for q in (ROOT / floor).rglob("*.sql")]
    assert len(sql) > 10
    wrong |= {str(q.relative_to(ROOT)) for q in sql if names_types(q.read_text())}
    assert wrong == set()


def test_only_the_registry_knows_the_folders_of_types() -> None:
    folders = {p.parent.name for p in (ROOT / "mteblite/task_types").glob("*/task_type.py")}
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if p.parts[:2] != ("mteblite", "task_types")
        and (
            found := {
                n for n in imports(p) if n.split(".")[1:3] in [["task_types", f] for f in folders]
            }
        )
    }
    assert len(folders) == len(type_names())
    assert wrong == {}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_neither_mteb_nor_torch(stage: str) -> None:
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if stage_of(p) == stage and (found := tops(imports(p)) & HEAVY)
    }
    assert wrong == {}


def test_nothing_heavy_is_imported_at_load() -> None:
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if (found := tops(imports(p, at_load=True)) & (HEAVY | AT_LOAD))
    }
    # Classes derived from mteb's cannot be made without mteb; they are imported when one is used.
    assert {k: v for k, v in wrong.items() if k not in DERIVE_FROM_MTEB} == {}


@pytest.mark.parametrize("stage", STAGES)
def test_init_of_a_stage_is_a_docstring(stage: str) -> None:
    body = ast.parse((ROOT / "mteblite_assets" / stage / "__init__.py").read_text()).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)
    assert isinstance(body[0].value, ast.Constant)
    assert "Grain: " in body[0].value.value


def test_files_stay_short() -> None:
    long = {str(p): n for p in modules() if (n := len((ROOT / p).read_text().splitlines())) > 300}
    assert long == {}


def test_folders_stay_small() -> None:
    counts = {}
    for p in modules():
        counts[str(p.parent)] = counts.get(str(p.parent), 0) + 1
    assert {folder: n for folder, n in counts.items() if n > 28} == {}


def test_no_file_names_this_machine() -> None:
    forbidden = (str(ROOT), str(ROOT.parent / "shared"))
    wrong = [
        str(p)
        for p in [*modules(), *(q.relative_to(ROOT) for q in (ROOT / "tests").rglob("*.py"))]
        if p.name != Path(__file__).name and any(f in (ROOT / p).read_text() for f in forbidden)
    ]
    assert wrong == []
