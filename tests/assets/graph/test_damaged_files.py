"""Files of a home that were changed give no other numbers: they are made again, or named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from support import tiny_suite
from support.tiny_suite import SUITE, table

FIT = ("item_parameters", "selections", "calibrations")


def shuffle_pools(home: Path) -> None:
    for path in home.glob("pools/*/*/texts.parquet"):
        frame = pd.read_parquet(path)
        frame["text"] = frame["text"].to_numpy()[::-1]
        frame.to_parquet(path, index=False)


def spoil_vectors(home: Path) -> None:
    """Turn the stored numbers into NaN; size and time stay."""
    for path in home.glob("vectors/*/*/*.npy"):
        times, array = path.stat(), np.load(path)
        np.save(path, np.full_like(array, np.nan))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def reverse_observations(home: Path) -> None:
    for path in home.glob("observations/*.npy"):
        np.save(path, np.load(path)[::-1])


def test_a_score_and_a_fit_are_those_of_the_files_that_were_written(home, world, upkeep, capfd):
    model = str(world.root / "models" / "spare-1")
    stages = [text for stage in FIT for text in ("--stage", stage)]
    fit = ["materialize", "--suite", SUITE, "--force", *stages]
    expected = tiny_suite.run_json("score", model, "--suite", SUITE)
    before = table(home, "calibrations.calibrations")

    world.restore()
    shuffle_pools(home)
    reverse_observations(home)
    tiny_suite.run_json(*fit)
    pd.testing.assert_frame_equal(table(home, "calibrations.calibrations"), before)
    assert tiny_suite.run_json("score", model, "--suite", SUITE)["mean"] == expected["mean"]
    out = capfd.readouterr()
    assert "Traceback" not in out.out + out.err

    # What was mended is as it was written, so that nothing is stale.
    spoil_vectors(home)
    outcomes = table(home, "outcomes.pool_scores", ["seconds"])
    tiny_suite.run_json("materialize", "--suite", SUITE, "--force", "--stage", "outcomes")
    pd.testing.assert_frame_equal(table(home, "outcomes.pool_scores", ["seconds"]), outcomes)
    assert not any(entry["run"] for entry in upkeep(command="plan")["assets"].values())


def test_what_cannot_be_made_again_is_named_and_nothing_is_scored(home, world):
    shuffle_pools(home)
    for path in world.root.glob("data/*/*.jsonl"):
        path.write_text(path.read_text().replace("word1", "word2"))
    code, out, err = tiny_suite.command(
        "--quiet", "score", str(world.root / "models" / "spare-1"), "--suite", SUITE
    )
    assert code == 1
    assert "does not hold what was written; drawn again it is another pool" in err
    assert "run `mteblite materialize --stage pools --force`" in err
    assert "Traceback" not in out + err
    assert "spare-1" not in set(table(home, "lite_scores.suite_scores")["model"])
