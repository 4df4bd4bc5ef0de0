"""The daemon sees that the official results changed, from directory entries, and asks once."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import dagster as dg
import pytest
from support import tiny_suite
from support.official_world import new_result, put, subsets

from mteblite_assets.cli.session import Session


def publish(mirror: Path, task: str, score: float) -> Path:
    return put(mirror, new_result(task, scores=subsets(default=score)))


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose official results lie in this folder; nothing is read yet."""
    home = tmp_path / "home"
    facts = home / "cache" / f"mteb-{importlib.metadata.version('mteb')}-registry.json"
    facts.parent.mkdir(parents=True)
    facts.write_text("{}")
    tiny_suite.use_home(monkeypatch, home)
    folder = tmp_path / "mirror"
    publish(folder, "TinySTS", 0.625)
    monkeypatch.setenv("MTEBLITE_OFFICIAL_SCORES", str(folder))
    return folder


def tick(session: Session, cursor: str) -> tuple[list[str], str, str]:
    """Partitions asked for, the next cursor, and why none is."""
    sensor = session.definitions.resolve_sensor_def("official_results")
    context = dg.build_sensor_context(
        instance=session.instance, cursor=cursor, definitions=session.definitions
    )
    found = sensor.evaluate_tick(context)
    asked = [str(r.partition_key) for r in found.run_requests or []]
    return asked, found.cursor or "", found.skip_message or ""


def read(session: Session) -> None:
    """Run the sensor's job as the daemon would."""
    job = session.definitions.resolve_job_def("read_official_results")
    assert job.execute_in_process(partition_key="official", instance=session.instance).success


def scores(mirror: Path) -> set[float]:
    rows = tiny_suite.table(mirror.parent / "home", "reference_scores.official_cells")
    return set(rows["main_score"])


def test_a_changed_folder_is_read_once_two_looks_agree(mirror: Path) -> None:
    session = Session()
    asked, cursor, why = tick(session, "")
    assert asked == []
    assert why == "the official results are as they were read"  # never read: a person's doing
    read(session)
    assert tick(session, cursor)[0] == []

    path = publish(mirror, "TinySTS", 0.75)
    asked, cursor, why = tick(session, cursor)
    assert (asked, why) == ([], "the official results change; waiting until two looks see the same")
    other = publish(mirror, "TinyTopics", 0.5)  # the copy goes on
    asked, cursor, _ = tick(session, cursor)
    assert asked == []
    asked, cursor, _ = tick(session, cursor)
    assert asked == ["official"]
    asked, cursor, why = tick(session, cursor)
    assert (asked, why) == ([], "a run was asked for")
    read(session)
    assert scores(mirror) == {0.75, 0.5}
    asked, cursor, _ = tick(session, cursor)
    assert asked == []

    other.unlink()
    os.utime(path, ns=(1, 1))
    asked, cursor, _ = tick(session, cursor)
    assert tick(session, cursor)[0] == ["official"]


def test_a_damaged_file_is_a_change_like_any_other(mirror: Path) -> None:
    session = Session()
    read(session)
    publish(mirror, "TinySTS", 0.75).write_text("{")
    cursor = tick(session, "")[1]
    assert tick(session, cursor)[0] == ["official"]


def test_a_table_is_seen_to_change(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    read(session)
    table = mirror.parent / "scores.parquet"
    table.write_bytes(b"no table")
    monkeypatch.setenv("MTEBLITE_OFFICIAL_SCORES", str(table))
    cursor = tick(session, "")[1]
    assert tick(session, cursor)[0] == ["official"]


def test_what_is_gone_or_unset_is_not_forgotten(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    read(session)
    mirror.rename(mirror.parent / "unmounted")
    asked, cursor, why = tick(session, "")
    assert asked == []
    assert "no official scores at" in why
    monkeypatch.delenv("MTEBLITE_OFFICIAL_SCORES")
    for _ in range(2):
        asked, cursor, why = tick(session, cursor)
        assert asked == []
    assert scores(mirror) == {0.625}
