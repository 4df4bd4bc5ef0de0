"""A run that finds the disk full says so in one sentence and loses nothing."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import tiny_suite
from support.disturbing import assert_same, empty, results, start_until
from support.tiny_suite import SUITE, ran, table

FULL = "No space left on device"


@pytest.fixture
def expected(home: Path) -> Any:
    """What an undisturbed build gives."""
    return results(home)


@pytest.fixture
def disk(home: Path, expected: Any) -> Iterator[Callable[[str], None]]:
    """`disk(size)` makes the emptied home a disk of that size, or resizes it."""
    kept = home.with_name("kept")
    empty(home)
    home.rename(kept)
    home.mkdir()

    def resize(size: str) -> None:
        mounted = home.is_mount()
        options = f"{'remount,' if mounted else ''}size={size}"
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(home)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no disk of a given size can be mounted here: {done.stderr.strip()}")
        if not mounted:
            shutil.copytree(kept, home, dirs_exist_ok=True)

    yield resize
    if home.is_mount():
        subprocess.run(["umount", str(home)], check=True)


def is_one_sentence(text: str) -> bool:
    """Whether a log ends with one line on the full disk and has no traceback."""
    last = text.rstrip().splitlines()[-1]
    return last.startswith(("error: ", "failed: ")) and "Traceback" not in text


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", ["2m", "6m", "12m", "18m", "24m"])
def test_disks_of_several_sizes(home, expected, disk, upkeep, size):
    disk(size)
    process, log = start_until(home, "never")
    assert process.exitcode == 1
    assert is_one_sentence(log.read_text())
    disk("1g")
    upkeep()
    assert_same(expected, results(home))


def test_full_disk_ends_the_run_with_its_reason_and_loses_nothing(home, upkeep, monkeypatch):
    import mteblite_assets.outcomes.assets as outcomes

    expected = results(home)
    empty(home)
    whole, left = outcomes.score_pool, [7]

    def full(*given, **named):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        return whole(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "score_pool", full)
        code, _, err = tiny_suite.command("--quiet", "materialize", "--suite", SUITE)
    assert code == 1
    assert "No space left on device" in err
    assert "what was finished is stored" in err
    assert "Traceback" not in err
    report = upkeep()
    assert "embedding_stats" not in ran(report)
    assert len(ran(report)["item_outcomes"]) == 15 - 7
    assert_same(expected, results(home))


def test_warehouse_that_cannot_be_written_loses_no_earlier_partition(home, upkeep, monkeypatch):
    import mteblite_assets.graph.driver as driver

    whole, left = driver.write_ledger, [20]

    def full(connection, asset, key, entry):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(connection, asset, key, entry)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "write_ledger", full)
        code, _, err = tiny_suite.command(
            "--quiet", "materialize", "--suite", SUITE, "--stage", "embeddings",
            "--stage", "outcomes", "--force",
        )  # fmt: skip
    assert code == 1
    assert "No space left on device" in err
    assert tiny_suite.counts(upkeep()) == {}
    assert len(table(home, "outcomes.item_outcomes")) == 600
