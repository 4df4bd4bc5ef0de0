"""What stands in files is seen by the daemon: the suite_files sensor asks for its assets."""

import dagster as dg
import pytest
import yaml
from support import tiny_suite

from mteblite_assets.cli.registering import add_model
from mteblite_assets.cli.session import Session


def _tick(session: Session, cursor: str) -> tuple[list[str], str]:
    sensor = session.definitions.resolve_sensor_def("suite_files")
    context = dg.build_sensor_context(
        instance=session.instance, cursor=cursor, definitions=session.definitions
    )
    result = sensor.evaluate_tick(context)
    roots = [r for r in result.run_requests or [] if r.job_name == "suite_files"]
    return [r.partition_key for r in roots], result.cursor or ""


def test_a_changed_suite_file_is_asked_for_once(home):
    session = Session()
    assert _tick(session, "")[0] == []
    path = home / "suites" / f"{tiny_suite.SUITE}.yaml"
    document = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**document, "k": 5}))
    asked, cursor = _tick(session, "")
    assert asked == [tiny_suite.SUITE]
    assert _tick(session, cursor)[0] == []
    path.write_text(yaml.safe_dump(document))
    asked, cursor = _tick(session, cursor)
    assert asked == []
    path.write_text(yaml.safe_dump({**document, "k": 5}))
    assert _tick(session, cursor)[0] == [tiny_suite.SUITE]


@pytest.mark.parametrize(("keys", "stages"), [
    ({"k": 5}, ["selections", "validation"]),
    ({"interval_level": 0.5}, ["lite_scores"]),
    ({"calibration": "crossfit"}, ["calibrations", "validation", "lite_scores"]),
    ({"description": "another"}, []),
])  # fmt: skip
def test_a_changed_method_is_asked_for_in_the_stages_that_use_it(home, keys, stages):
    session = Session()
    path = home / "suites" / f"{tiny_suite.SUITE}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}))
    sensor = session.definitions.resolve_sensor_def("suite_files")
    context = dg.build_sensor_context(
        instance=session.instance, cursor="", definitions=session.definitions
    )
    found = sensor.evaluate_tick(context)
    asked = [r for r in found.run_requests or [] if r.job_name == "materialize"]
    scopes = [r.run_config["ops"]["upkeep"]["config"] for r in asked]
    assert [s["suite"] for s in scopes] == [tiny_suite.SUITE] * bool(stages)
    assert [list(s["stages"]) for s in scopes] == [stages] * bool(stages)


def test_a_new_reference_model_is_asked_for_and_a_candidate_is_not(home):
    session = Session()
    for role, expected in (("candidate", []), ("reference", [tiny_suite.SUITE])):
        name = f"spare-{'1' if role == 'candidate' else '2'}"
        path = str(home.parent / "models" / name)
        add_model(session, tiny_suite.SUITE, name, role=role, family="new", path=path)
        assert _tick(session, "")[0] == expected


def test_nothing_is_asked_for_in_an_empty_home(empty_home):
    assert _tick(Session(), "")[0] == []


def test_roots_start_nothing_by_themselves(home):
    graph = Session().definitions.resolve_asset_graph()
    for name in ("suite_tasks", "roster"):
        assert graph.get(dg.AssetKey(name)).automation_condition is None
    assert graph.get(dg.AssetKey("pool_items")).automation_condition is not None


@pytest.mark.parametrize("tag", ["", "1"])
def test_runs_of_killed_commands_are_marked_failed(home, tag):
    session = Session()
    process = tag or "999999999"
    run = session.instance.create_run_for_job(
        session.definitions.resolve_job_def("materialize"),
        tags={"mteblite/process": process},
        run_config={"ops": {"upkeep": {"config": {"suite": tiny_suite.SUITE}}}},
    )
    session.instance.report_dagster_event(
        dg.DagsterEvent("PIPELINE_START", "materialize"), run_id=run.run_id
    )
    session.fail_dead_runs()
    found = session.instance.get_run_by_id(run.run_id)
    expected = dg.DagsterRunStatus.STARTED if tag else dg.DagsterRunStatus.FAILURE
    assert found is not None
    assert found.status is expected
