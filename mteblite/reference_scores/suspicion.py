"""Implausible official scores, and unusual but possible ones.

Public results contain broken runs, scores divided by 100 twice, and zeros of interrupted runs. A
wrong full score would distort the calibration of its task, so implausible cells are refused with a
reason. Unusual but possible cells are taken, with a note. Nothing is clipped: p-MRR and
correlations may be negative.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.reference_scores.low_rank import robust_residuals

COLUMN = ("task_name", "split", "hf_subset")
FILE = ("model_name", "task_name")
RUN = ("model_name", "revision")
ENGLISH = ("default", "en", "en-en", "eng", "eng-eng", "eng_Latn", "eng_Latn-eng_Latn")

FEWEST_MODELS = 10
"""Fewest scores of other models beside a zero that is refused."""
PLAUSIBLE_LOW = 0.05
"""A zero is refused where nine in ten of the other models score above this."""
BROKEN_TASKS = 5
"""Refused zeros in this many tasks make the whole revision a broken run."""
OUTLIER_SD = 8.0
"""Robust sd from a low-rank fit beyond which a score is an outlier."""
FIT_MODELS, FIT_TASKS = 30, 10
"""Scores that a column and a model need to enter a fit."""
PERCENT_OF_PERCENT = 0.0101
"""Largest score that can come from dividing a fraction by 100 once too often."""


def suspicious_cells(
    cells: pd.DataFrame, benchmarks: Mapping[str, Collection[tuple[str, str, str]]] | None = None
) -> pd.DataFrame:
    """Return the suspicious cells with the reason and the decision.

    Args:
        cells: one row per model and column: `model_name`, `revision`, `task_name`, `split`,
            `hf_subset` and `main_score` (finite fractions).
        benchmarks: (task, split, subset) of benchmarks that get a separate fit. Tasks of one
            benchmark that most models ran predict each other better than all tasks do, most of
            which are in other languages and have scores of fewer models.

    Returns:
        Rows of `cells` (index kept; a cell may have two rows) with `reason` and `decision`,
        `refused` or `taken`. Exact zeros are refused where other models score far above zero.
        Outliers of a rank-4 fit, over one cell per task or over a benchmark, are refused below the
        fit and taken above it, because a model may be good at, or trained on, one task.
    """
    columns = _codes(cells, COLUMN)
    zeros = _zeros(cells, columns)
    outliers = _outliers(cells, columns, benchmarks or {})
    found = pd.concat([zeros, outliers, _same_unit(cells, outliers), _broken_runs(cells, zeros)])
    return cells.loc[found.index].assign(reason=found["reason"], decision=found["decision"])


def _zeros(cells: pd.DataFrame, columns: np.ndarray) -> pd.DataFrame:
    """Return exact zeros; they are refused where nearly all other models score above zero."""
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
    """Return every cell of a revision with zeros in many tasks."""
    runs = pd.Series(_codes(cells, RUN), index=cells.index)
    refused = zeros.index[zeros["decision"] == "refused"]
    tasks = cells.loc[refused, "task_name"].astype(str).groupby(runs[refused]).nunique()
    broken = tasks[tasks >= BROKEN_TASKS]
    rows = runs[runs.isin(broken.index)]
    reasons = [f"broken run: exact zeros in {n} tasks" for n in broken.reindex(rows)]
    return _found(rows.index, reasons, np.ones(len(reasons), dtype=bool))


def _outliers(
    cells: pd.DataFrame,
    columns: np.ndarray,
    benchmarks: Mapping[str, Collection[tuple[str, str, str]]],
) -> pd.DataFrame:
    """Return scores far from the rank-4 fits; of several fits the one with the largest distance."""
    known = _known_columns(cells, columns)
    fits = {"": _headline(known)}
    for name, wanted in benchmarks.items():
        keys = pd.MultiIndex.from_frame(known[list(COLUMN)])
        fits[f" of {name}"] = known.loc[keys.isin(list(wanted)), "code"].to_numpy()
    far = pd.concat(
        [_far_cells(cells, columns, codes).assign(fit=name) for name, codes in fits.items()]
    )
    far = far.iloc[np.argsort(-far["away"].abs().to_numpy(), kind="stable")]
    far = far[~far.index.duplicated()].sort_index()
    rows = cells.loc[far.index]
    percent = _percent_of_percent(cells, rows, far["median"])
    reasons = [
        f"outlier: {score:.4f} lies {abs(z):.0f} robust sd {'below' if z < 0 else 'above'} a "
        f"rank-4 fit{fit} (median of the task {median:.3f})" + (_PERCENT if z < 0 and twice else "")
        for score, z, fit, median, twice in zip(
            rows["main_score"], far["away"], far["fit"], far["median"], percent, strict=True
        )
    ]
    return _found(rows.index, reasons, far["away"].to_numpy() < 0)


def _far_cells(cells: pd.DataFrame, columns: np.ndarray, codes: np.ndarray) -> pd.DataFrame:
    """Return `away` (robust sd) and the column's `median` of the outliers among these columns."""
    inside = np.isin(columns, codes)
    rows = cells.loc[inside, ["model_name", "main_score"]].astype({"model_name": str})
    rows = rows.assign(code=columns[inside], row=rows.index)
    wide = rows.pivot(index="model_name", columns="code", values="main_score")
    wide = wide[codes].loc[:, (wide[codes].notna().sum(axis=0) >= FIT_MODELS).to_numpy()]
    wide = wide.loc[wide.notna().sum(axis=1) >= FIT_TASKS].sort_index()
    away = robust_residuals(wide.to_numpy(dtype=float))
    model, column = np.nonzero(np.abs(np.nan_to_num(away)) > OUTLIER_SD)
    where = pd.MultiIndex.from_arrays([wide.index[model], wide.columns[column]])
    index = rows.set_index(["model_name", "code"])["row"].reindex(where).to_numpy()
    medians = wide.median().to_numpy(dtype=float)[column]
    return pd.DataFrame({"away": away[model, column], "median": medians}, index=index)


_PERCENT = "; looks divided by 100 twice"


def _percent_of_percent(cells: pd.DataFrame, low: pd.DataFrame, medians: pd.Series) -> np.ndarray:
    """Return whether all scores of a file are tiny and 100 times the low score is usual."""
    files = pd.Series(_codes(cells, FILE), index=cells.index)
    mine = cells["main_score"].abs()[files.isin(files[low.index])]
    largest = mine.groupby(files[mine.index]).max()
    tiny = largest.reindex(files[low.index]).to_numpy() <= PERCENT_OF_PERCENT
    usual = 100 * low["main_score"] >= medians / 2
    found: np.ndarray = tiny & usual.to_numpy()
    return found


def _same_unit(cells: pd.DataFrame, outliers: pd.DataFrame) -> pd.DataFrame:
    """Return the other cells of a file whose headline score looks divided by 100 twice."""
    marked = outliers.index[outliers["reason"].str.endswith(_PERCENT)]
    files = pd.Series(_codes(cells, FILE), index=cells.index)
    rows = cells.index[files.isin(files[marked])].difference(marked)
    reasons = ["looks divided by 100 twice, like the task's other scores of this model"] * len(rows)
    return _found(rows, reasons, np.ones(len(rows), dtype=bool))


def _known_columns(cells: pd.DataFrame, columns: np.ndarray) -> pd.DataFrame:
    """Return one row per column, by name: its `code`, and the number of models `n`."""
    codes, first, sizes = np.unique(columns, return_index=True, return_counts=True)
    table = cells.iloc[first][list(COLUMN)].astype(str).assign(code=codes, n=sizes)
    return table.sort_values(list(COLUMN))


def _headline(known: pd.DataFrame) -> np.ndarray:
    """Return one column per task: English if the task has it, else the one of most models."""
    table = known.assign(english=known["hf_subset"].isin(ENGLISH))
    table = table.sort_values(
        ["task_name", "english", "n", "split", "hf_subset"],
        ascending=[True, False, False, True, True],
    ).drop_duplicates("task_name")
    found: np.ndarray = table["code"].to_numpy()
    return found


def _codes(cells: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Return integers (n_cells,) that are equal where all these columns are equal."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for name in names:
        own, values = pd.factorize(cells[name])
        codes = codes * (len(values) + 1) + own
    return codes


def _found(index: pd.Index, reasons: list[str], refused: np.ndarray) -> pd.DataFrame:
    decision = np.where(refused, "refused", "taken")
    return pd.DataFrame({"reason": reasons, "decision": decision}, index=index, dtype=object)
