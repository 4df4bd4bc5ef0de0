"""Choice of one result file per (model, task), by the rule of mteb's leaderboard.

A model has results of several revisions, runs and uploads. mteb's leaderboard keeps one file per
(model, experiment, task), chosen by `BenchmarkResults.join_revisions`
(mteb/results/benchmark_results.py). First comes the revision that mteb's registry pins, then a file
with a version of mteb, then one with a revision, then the latest version of mteb.
"""

from __future__ import annotations

import re

import pandas as pd

NO_REVISION = ("", "external", "no_revision_available")
"""Missing revisions: of model cards, and of runs before mteb recorded revisions."""

_KEY = ["model_name", "experiment", "task_name"]


def pick_revisions(files: pd.DataFrame) -> pd.Series:
    """Return for every result file whether the leaderboard uses it.

    Args:
        files: one row per file with scores: `model_name`, `revision`, `mteb_version`,
            `task_name`, `experiment` ("" or missing for none), `main_revision` (the revision that
            mteb's registry pins, or missing) and `file`, a stable name.

    Returns:
        True for one file of every (model, task), and False for files of experiments, which the
        leaderboard does not show. Of files that the rule ranks equal, the first by `file` is kept
        (in mteb, the first in the listing of the folder).
    """
    ranked = pd.DataFrame({column: files[column] for column in ("model_name", "task_name", "file")})
    ranked["experiment"] = files["experiment"].fillna("").astype(str)
    revision = files["revision"].fillna("").astype(str)
    version = version_rank(files["mteb_version"])
    pinned = files["main_revision"].notna() & (revision == files["main_revision"])
    ranked["priority"] = 1000 * pinned + 100 * (version >= 0) + 10 * ~revision.isin(NO_REVISION)
    ranked["version"] = version
    ranked = ranked.sort_values(
        [*_KEY, "priority", "version", "file"],
        ascending=[True, True, True, False, False, True],
        kind="stable",
    )
    first = ~ranked.duplicated(_KEY) & (ranked["experiment"] == "")
    return first.reindex(files.index)


def version_rank(versions: pd.Series) -> pd.Series:
    """Return the rank of each version of mteb among the versions; -1 without a version.

    mteb writes a range such as `2.10.0-2.18.7` into files merged from two runs. Its rule cannot
    parse a range and ranks the file as one without a version.
    """
    from packaging.version import InvalidVersion, Version

    parsed: dict[str, Version] = {}
    for text in versions.dropna().astype(str).unique():
        try:
            parsed[text] = Version(text)
        except InvalidVersion:
            continue
    order = {v: place for place, v in enumerate(sorted(set(parsed.values())))}
    ranks = {text: order[v] for text, v in parsed.items()}
    return versions.map(ranks).fillna(-1).astype(int)


def is_range(version: str) -> bool:
    """Return whether a version of mteb is the range of a file merged from two runs."""
    return bool(re.fullmatch(r"\d[\w.]*-\d[\w.]*", version))
