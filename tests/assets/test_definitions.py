"""The definitions: light to load, valid, described, and in flow order."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.stages import STAGE_NAMES
from mteblite_resources.home import Home

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "sentence_transformers", "mteb", "sklearn")
# dagster_dbt imports dbt-core, which alone takes about 1 CPU second of this bound.
CPU_SECONDS = 3.0

PROBE = f"""
import sys, time
import {{module}}
print(repr((time.process_time(), [m for m in {HEAVY!r} if m in sys.modules])))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of its own whose dbt project has been parsed (that happens once per home)."""
    root = tmp_path_factory.mktemp("definitions") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTEBLITE_HOME", str(root))
        patch.setenv("DAGSTER_HOME", str(root / "dagster"))
        from mteblite_assets.definitions import build_definitions

        Home(root).prepare()
        build_definitions()
        yield root


@pytest.fixture(scope="module")
def graph(home: Path) -> Any:
    """The asset graph as Dagster resolves it."""
    from mteblite_assets.definitions import build_definitions

    return build_definitions().resolve_asset_graph()


def assets(graph: Any) -> list[Any]:
    """Nodes of the assets that the graph makes."""
    return [graph.get(k) for k in graph.toposorted_asset_keys if graph.get(k).is_materializable]


def imported(module: str, home: Path) -> tuple[float, list[str]]:
    """CPU seconds of importing a module in a fresh process, and the heavy modules it pulls in."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(module=module)],
        env={**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")},
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    seconds, heavy = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    return float(seconds), list(heavy)


def test_loading_the_definitions_is_light(home: Path) -> None:
    loads = [imported("mteblite_assets.definitions", home) for _ in range(2)]
    baseline = min(imported("dagster", home)[0] for _ in range(2))
    assert [heavy for _, heavy in loads] == [[], []]
    assert min(seconds for seconds, _ in loads) - baseline <= CPU_SECONDS


def test_importing_the_definitions_creates_nothing(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    imported("mteblite_assets.definitions", absent)
    assert list(tmp_path.iterdir()) == []


def test_dagster_validates_the_workspace(home: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dagster")), "definitions", "validate",
         "-w", str(ROOT / "workspace.yaml")],
        env={**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")},
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_asset_is_described(graph: Any) -> None:
    for node in assets(graph):
        name = node.key.to_user_string()
        assert node.description, f"{name} has no description"
        assert node.group_name in STAGE_NAMES, f"{name} is in group {node.group_name}"
        assert node.kinds, f"{name} has no kinds"
        assert node.code_version, f"{name} has no code version"


def test_description_starts_with_the_grain(graph: Any) -> None:
    vague = [
        node.key.to_user_string()
        for node in assets(graph)
        if not node.description.startswith("One row per ")
    ]
    assert vague == []


def test_groups_are_the_stages(graph: Any) -> None:
    assert {node.group_name for node in assets(graph)} == set(STAGE_NAMES)
    assert tuple(dict.fromkeys(asset.stage for asset in ASSETS)) == STAGE_NAMES


def test_asset_keys_are_unique(graph: Any) -> None:
    names = [node.key.to_user_string() for node in assets(graph)]
    last_parts = [node.key.path[-1] for node in assets(graph)]
    assert len(set(names)) == len(names)
    assert len(set(last_parts)) == len(last_parts)


def test_every_upstream_is_an_asset_of_the_graph(graph: Any) -> None:
    known = {node.key for node in assets(graph)}
    assert set(graph.get_all_asset_keys()) == known  # a misnamed dbt source would be one more


def test_deps_point_upwards(graph: Any) -> None:
    order = {name: place for place, name in enumerate(STAGE_NAMES)}
    groups = {node.key: node.group_name for node in assets(graph)}
    # Pools are drawn from tasks resolved by the suites stage; nothing reads a later stage.
    downwards = [
        (node.key.to_user_string(), parent.to_user_string())
        for node in assets(graph)
        for parent in node.parent_keys
        if order[groups[parent]] > order[node.group_name]
    ]
    assert downwards == []


def test_checks_belong_to_their_assets(graph: Any) -> None:
    keys = {node.key for node in assets(graph)}
    checks = graph.asset_check_keys
    assert {"item_ids_unique", "weights_sum_to_one", "outcomes_finite_and_in_range",
            "held_out_family_absent_from_its_fit"} <= {c.name for c in checks}  # fmt: skip
    assert {c.asset_key for c in checks} <= keys


def test_jobs_and_sensors_are_there(home: Path) -> None:
    from mteblite_assets.definitions import build_definitions

    built = build_definitions()
    assert "materialize" in {j.name for j in built.resolve_all_job_defs()}
    repository = built.get_repository_def()
    assert {s.name for s in repository.sensor_defs} == {"upkeep"}
