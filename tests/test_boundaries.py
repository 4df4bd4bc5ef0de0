"""Who may import what, read from the source: Dagster, mteb, and stages among each other."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mteblite_assets.graph.stages import STAGE_NAMES

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "mteblite_assets"
STAGES = STAGE_NAMES[:-1]  # dbt_reports is SQL
TORCH_PRODUCTS = "mteblite/task_types/summarization/outcomes.py"
"""Orders near-ties by the last digit of torch's float32 products, as mteb does."""

HEAVY = {"mteb", "torch", "transformers", "sentence_transformers", "datasets"}
AT_LOAD = {"sklearn", "scipy", "huggingface_hub", "dbt"}
SPEAKS_DAGSTER = {"assets", "checks", "partitions", "definitions", "reports", "sensors",
                  "automation", "light_dagster_dbt"}  # fmt: skip
VOCABULARY = {"mteblite.pools.task_data", "mteblite.pools.pool"}
"""What a task and a pool's settings are: the suite files speak of them, too."""
DECORATED = {"assets", "checks"}
DERIVE_FROM_MTEB = {
    "mteblite/models/stored_encoder.py",
    "mteblite/sample/tasks/tasks.py",
    "mteblite/sample/tasks/dataset_shapes.py",
}


def modules() -> list[Path]:
    """All modules of the two packages."""
    found = [*ASSETS.rglob("*.py"), *(ROOT / "mteblite_resources").rglob("*.py")]
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


def speaks_dagster(path: Path) -> bool:
    """Whether CONTRIBUTING lets a module import Dagster."""
    if path.parts[0] == "mteblite_resources":
        return len(path.parts) == 2
    return path.stem in SPEAKS_DAGSTER or path.parts[1] in ("graph", "cli")


def stage_of(path: Path) -> str | None:
    """The stage a module belongs to, None outside the stages."""
    return path.parts[1] if path.parts[0] == "mteblite_assets" and path.parts[1] in STAGES else None


def is_pure(path: Path) -> bool:
    """Whether a module is a stage's domain code, not its declaration."""
    return stage_of(path) is not None and path.stem not in DECORATED


def test_dagster_is_spoken_only_where_it_may_be() -> None:
    wrong = [
        str(p)
        for p in modules()
        if tops(imports(p)) & {"dagster", "dagster_dbt"} and not speaks_dagster(p)
    ]
    assert wrong == []


def test_resources_speak_dagster_in_one_place() -> None:
    speakers = [
        p.name
        for p in modules()
        if p.parts[0] == "mteblite_resources" and "dagster" in tops(imports(p))
    ]
    assert speakers == ["resources.py"]


def test_ruff_lets_no_more_modules_speak_dagster() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "dagster" in settings["flake8-tidy-imports"]["banned-api"]
    allowed = {g for g, rules in settings["per-file-ignores"].items() if "TID251" in rules}
    assert {g for g in allowed if g.startswith("mteblite_")} == {
        "mteblite_assets/**/{assets,checks,partitions,definitions,reports,sensors,automation}.py",
        "mteblite_assets/graph/*.py",
        "mteblite_assets/cli/*.py",
        "mteblite_resources/*.py",
    }


@pytest.mark.parametrize("stage", STAGES)
def test_stage_imports_neither_mteb_nor_torch(stage: str) -> None:
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if stage_of(p) == stage
        and (found := tops(imports(p)) & HEAVY)
        and (str(p), found) != (TORCH_PRODUCTS, {"torch"})
    }
    assert wrong == {}


@pytest.mark.parametrize("stage", STAGES)
def test_pure_modules_do_no_io(stage: str) -> None:
    wrong = {
        str(p): sorted(found)
        for p in modules()
        if is_pure(p) and stage_of(p) == stage
        and (found := tops(imports(p)) & {"duckdb", "mteblite_resources", "subprocess", "requests"})
    }  # fmt: skip
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
def test_stage_imports_only_stages_above_it(stage: str) -> None:
    below = set(STAGES[STAGES.index(stage) + 1 :])
    wrong = {}
    for path in (p for p in modules() if stage_of(p) == stage):
        found = {
            name
            for name in imports(path)
            if name.startswith("mteblite_assets.") and name.split(".")[1] in below
        }
        found = {n for n in found if not any(f"{n}.".startswith(f"{v}.") for v in VOCABULARY)}
        if found:
            wrong[str(path)] = sorted(found)
    assert wrong == {}


@pytest.mark.parametrize("stage", STAGES)
def test_init_of_a_stage_is_a_docstring(stage: str) -> None:
    body = ast.parse((ASSETS / stage / "__init__.py").read_text()).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)
    assert isinstance(body[0].value, ast.Constant)
    assert "Grain: " in body[0].value.value


def test_files_stay_short() -> None:
    long = {str(p): n for p in modules() if (n := len((ROOT / p).read_text().splitlines())) > 300}
    assert set(long) <= {"mteblite_resources/workbench.py"}, long


def test_no_file_names_this_machine() -> None:
    forbidden = (str(ROOT), str(ROOT.parent / "shared"))
    wrong = [
        str(p)
        for p in [*modules(), *(q.relative_to(ROOT) for q in (ROOT / "tests").rglob("*.py"))]
        if p.name != Path(__file__).name and any(f in (ROOT / p).read_text() for f in forbidden)
    ]
    assert wrong == []
