"""A run that is killed or stopped keeps what it had; the next one continues."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from support import tiny_suite
from support.disturbing import assert_same, empty, results, stop_at
from support.tiny_suite import ran, table

from mteblite_assets.cli.session import Session

KILLS = 22


def test_killed_run_is_continued(world, home, upkeep):
    expected = results(home)
    empty(home)
    process, _ = stop_at(home, "embedding_stats 4/", signal.SIGKILL)
    assert process.exitcode == -signal.SIGKILL
    report = upkeep()
    first, again = ran(world.first), ran(report)
    done = {a: set(keys) - set(again.get(a, [])) for a, keys in first.items()}
    # A batch that was not stored yet runs again; whole stages before it do not.
    assert done["suite_tasks"]
    assert done["pool_items"] == set(first["pool_items"])
    assert_same(expected, results(home))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_build_that_is_killed_at_every_asset_ends_as_if_undisturbed(world, home, upkeep):
    """Each run is killed at the head of one asset, or a little later; the next one goes on."""
    expected = results(home)
    empty(home)
    rng = np.random.default_rng(0)
    heads = [f"== {a['stage']} / {name}:" for name, a in world.first["assets"].items() if a["run"]]
    kills = 0
    for head in heads[:KILLS]:
        delay = rng.choice([0.0, 0.1, 0.4])
        process, _ = stop_at(home, head, signal.SIGKILL, delay)
        kills += process.exitcode == -signal.SIGKILL
    upkeep()
    assert_same(expected, results(home))
    assert not tiny_suite.ran(upkeep(command="plan"))
    assert kills >= KILLS - 3, "most runs were over before they were killed"
    assert len(heads) >= KILLS


def test_ctrl_c_says_what_is_kept(home):
    empty(home)
    process, text = stop_at(home, "embedding_stats 2/", signal.SIGINT)
    assert process.exitcode == 130, text
    assert text.rstrip().endswith("stopped; what was finished is stored, the next run continues")
    assert "Traceback" not in text


def test_half_a_snapshot_of_a_killed_run_is_cleared_away(home):
    left = home / ".mteblite.duckdb.99999999"
    left.write_bytes(b"half")
    Session().bench.warehouse.publish(anew=True)
    assert not left.exists()
    assert len(table(home, "outcomes.pool_scores")) == 15
