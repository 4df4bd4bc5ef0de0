"""Official scores that cannot be what they say, and odd ones that can.

Public results hold broken runs, scores divided by 100 twice, and zeros of interrupted runs. A
full score that is wrong would bend the calibration of its task, so such cells are refused, with
the reason; what is odd but possible is taken, and noted as well. Nothing is clipped: p-MRR and
correlations may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mteblite_assets.reference_scores.low_rank import robust_residuals

COLUMN = ("task_name", "split", "hf_subset")
FILE = ("model_name", "task_name")
RUN = ("model_name", "revision")
ENGLISH = ("default", "en", "en-en", "eng", "eng-eng", "eng_Latn", "eng_Latn-eng_Latn")

FEWEST_MODELS = 10
"""Scores of a cell before a zero among them tells anything."""
PLAUSIBLE_LOW = 0.05
"""A zero is refused where nine in ten of the other models score above this."""
BROKEN_TASKS = 5
"""Refused zeros in this many tasks make the whole revision a broken run."""
OUTLIER_SD = 8.0
"""Robust sd from the low-rank fit beyond which a score is an outlier."""
FIT_MODELS, FIT_TASKS = 30, 10
"""Scores that a task and a model need to enter the fit."""
PERCENT_OF_PERCENT = 0.0101
"""Largest score that can come from dividing a fraction by 100 once too often."""


def suspicious_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that stand out, with the reason and what is done about them.

    Args:
        cells: one row per cell that counts: `model_name`, `revision`, `task_name`, `split`,
            `hf_subset` and `main_score` (finite fractions). One row per model and column.

    Returns:
        Rows of `cells` (index kept; a cell may stand out twice) with `reason` and `decision`,
        `refused` or `taken`. Exact zeros are refused where other models are far from it,
        outliers from a rank-4 fit over one cell per task where they lie below. Scores above the
        fit are taken: to be good at, or trained on, one task is no error of the file.
    """
    columns = _codes(cells, COLUMN)
    zeros = _zeros(cells, columns)
    outliers = _outliers(cells, columns)
    found = pd.concat([zeros, outliers, _same_unit(cells, outliers), _broken_runs(cells, zeros)])
    return cells.loc[found.index].assign(reason=found["reason"], decision=found["decision"])


def _zeros(cells: pd.DataFrame, columns: np.ndarray) -> pd.DataFrame:
    """Exact zeros: refused where nearly all other models are well above."""
    scores = cells["main_score"].to_numpy(dtype=float)
    zero = scores == 0.0
    beside = ~zero & np.isin(columns, np.unique(columns[zero]))
    others = pd.Series(scores[beside]).groupby(columns[beside])
    stats = pd.DataFrame(
        {"low": others.quantile(0.1), "median": others.median(), "n": others.size()}
    ).reindex(columns[zero])
    refused = ((stats["low"] > PLAUSIBLE_LOW) & (stats["n"] >= FEWEST_MODELS)).to_numpy()
    reasons = [
        f"exact zero; the median of {n:.0f} other models is {median:.3f}"
        + (f", nine in ten are above {low:.3f}" if bad else "")
        if n == n
        else "exact zero; no other model has another score"
        for n, median, low, bad in zip(
            stats["n"], stats["median"], stats["low"], refused, strict=True
        )
    ]
    return _found(cells.index[zero], reasons, refused)


def _broken_runs(cells: pd.DataFrame, zeros: pd.DataFrame) -> pd.DataFrame:
    """Every cell of a revision that is zero in many tasks."""
    runs = pd.Series(_codes(cells, RUN), index=cells.index)
    refused = zeros.index[zeros["decision"] == "refused"]
    tasks = cells.loc[refused, "task_name"].astype(str).groupby(runs[refused]).nunique()
    broken = tasks[tasks >= BROKEN_TASKS]
    rows = runs[runs.isin(broken.index)]
    reasons = [f"broken run: exact zeros in {n} tasks" for n in broken.reindex(rows)]
    return _found(rows.index, reasons, np.ones(len(reasons), dtype=bool))


def _outliers(cells: pd.DataFrame, columns: np.ndarray) -> pd.DataFrame:
    """Scores far from what a rank-4 fit over one cell per task makes of the model's others."""
    headline = cells[_headline(cells, columns)]
    headline = headline.astype(dict.fromkeys(FILE, str))
    wide = headline.pivot(index="model_name", columns="task_name", values="main_score")
    wide = wide.loc[:, wide.notna().sum(axis=0) >= FIT_MODELS]
    wide = wide.loc[wide.notna().sum(axis=1) >= FIT_TASKS]
    wide = wide.sort_index(axis=0).sort_index(axis=1)
    if wide.size == 0:
        return _found(cells.index[:0], [], np.zeros(0, dtype=bool))
    far = pd.DataFrame(
        robust_residuals(wide.to_numpy(dtype=float)), index=wide.index, columns=wide.columns
    ).stack()
    far = far.loc[far.abs().to_numpy() > OUTLIER_SD]
    keys = pd.MultiIndex.from_frame(headline[list(FILE)])
    rows = headline[keys.isin(far.index)]
    away = far.reindex(pd.MultiIndex.from_frame(rows[list(FILE)])).to_numpy(dtype=float)
    medians = wide.median()
    percent = _percent_of_percent(cells, rows, medians)
    reasons = [
        f"outlier: {score:.4f} lies {abs(z):.0f} robust sd {'below' if z < 0 else 'above'} a "
        f"rank-4 fit (median of the task {medians[task]:.3f})"
        + (_PERCENT if z < 0 and twice else "")
        for score, task, z, twice in zip(
            rows["main_score"], rows["task_name"], away, percent, strict=True
        )
    ]
    return _found(rows.index, reasons, away < 0)


_PERCENT = "; looks divided by 100 twice"


def _percent_of_percent(cells: pd.DataFrame, low: pd.DataFrame, medians: pd.Series) -> np.ndarray:
    """Whether all scores of a low score's file are tiny, and 100 times it would be usual."""
    files = pd.Series(_codes(cells, FILE), index=cells.index)
    mine = cells["main_score"].abs()[files.isin(files[low.index])]
    largest = mine.groupby(files[mine.index]).max()
    tiny = largest.reindex(files[low.index]).to_numpy() <= PERCENT_OF_PERCENT
    usual = 100 * low["main_score"] >= medians.reindex(low["task_name"]).to_numpy() / 2
    found: np.ndarray = tiny & usual.to_numpy()
    return found


def _same_unit(cells: pd.DataFrame, outliers: pd.DataFrame) -> pd.DataFrame:
    """The other cells of a file whose headline score looks divided by 100 twice."""
    marked = outliers.index[outliers["reason"].str.endswith(_PERCENT)]
    files = pd.Series(_codes(cells, FILE), index=cells.index)
    rows = cells.index[files.isin(files[marked])].difference(marked)
    reasons = ["looks divided by 100 twice, like the task's other scores of this model"] * len(rows)
    return _found(rows, reasons, np.ones(len(rows), dtype=bool))


def _headline(cells: pd.DataFrame, columns: np.ndarray) -> np.ndarray:
    """One column per task: English where there is it, else the one that most models have."""
    codes, first, sizes = np.unique(columns, return_index=True, return_counts=True)
    table = cells.iloc[first][list(COLUMN)].astype(str).assign(code=codes, n=sizes)
    table["english"] = table["hf_subset"].isin(ENGLISH)
    table = table.sort_values(
        ["task_name", "english", "n", "split", "hf_subset"],
        ascending=[True, False, False, True, True],
    ).drop_duplicates("task_name")
    return np.isin(columns, table["code"].to_numpy())


def _codes(cells: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Integers (n_cells,) that are equal where all these columns are; fast on categories."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for name in names:
        own, values = pd.factorize(cells[name])
        codes = codes * (len(values) + 1) + own
    return codes


def _found(index: pd.Index, reasons: list[str], refused: np.ndarray) -> pd.DataFrame:
    decision = np.where(refused, "refused", "taken")
    return pd.DataFrame({"reason": reasons, "decision": decision}, index=index, dtype=object)
