"""Full scores of all public models from the cells of the official results.

They are the reference scores of the models that a suite lists. A joint calibration also estimates
the covariance of tasks from them. For that, every model needs a family, so that near-copies of a
held-out model are held out as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

COLUMNS = [
    "task", "model", "main_score", "revision", "mteb_version", "registered", "repaired",
    "refused", "noted",
]  # fmt: skip
SEPARATORS = {
    "revision": ",",
    "mteb_version": ",",
    "repaired": "; ",
    "refused": "; ",
    "noted": "; ",
}
"""Text columns of a task's cells, with the separator of their different values."""

_CELL = ["task", "split", "hf_subset"]
_SCORE = ["task", "model"]


def full_scores_of(cells: pd.DataFrame, needed: pd.DataFrame) -> pd.DataFrame:
    """Return the full score of every model that has all cells of a task, for many tasks at once.

    Args:
        cells: one row per (task, model, split, hf_subset): `main_score` (NaN = no number),
            `registered`, and the texts `revision`, `mteb_version`, `repaired`, `refused` and
            `noted` ("" = none).
        needed: `task`, `split`, `hf_subset` of the tasks; a full score is the mean over them, as
            on mteb's leaderboard.

    Returns:
        One row per (task, model), sorted: the columns of `COLUMNS`. `main_score` is NaN where a
        needed cell has no number; texts of the cells are joined. A model that lacks a cell has no
        row.
    """
    needed = needed[_CELL].drop_duplicates()
    rows = cells.merge(needed, on=_CELL)
    n_needed = rows["task"].map(needed.groupby("task").size())
    rows = rows[rows.groupby(_SCORE)["model"].transform("size") == n_needed]
    groups = rows.groupby(_SCORE, sort=True)
    # A cell without a number makes the mean NaN; `mean` of pandas would skip it.
    scores = groups["main_score"].agg(["sum", "count", "size"])
    mean = (scores["sum"] / scores["size"]).where(scores["count"] == scores["size"])
    found = pd.DataFrame({"main_score": mean, "registered": groups["registered"].all()})
    for name, separator in SEPARATORS.items():
        texts = rows.loc[rows[name] != "", [*_SCORE, name]].drop_duplicates()
        several = texts.duplicated(_SCORE, keep=False)
        joined = texts[several].sort_values([*_SCORE, name]).groupby(_SCORE)[name]
        known = pd.concat([texts[~several].set_index(_SCORE)[name], joined.agg(separator.join)])
        found[name] = known.reindex(found.index).fillna("")
    return found.reset_index()[COLUMNS]


def usable(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose score is a number with no refused cell."""
    return scores[np.isfinite(scores["main_score"].astype(float)) & (scores["refused"] == "")]


def joint_scores(
    scores: pd.DataFrame, parents: Mapping[str, str], suite_families: Mapping[str, str]
) -> pd.DataFrame:
    """Return the scores for joint calibrations: `model`, `family`, `task`, `main_score`.

    Refused scores and outliers are left out, because they would distort the covariance of tasks.
    Ancestors of several of the suite's families are left out, because each of these families would
    have to be held out with them. Fine-tunes and ancestors of the suite's models have the families
    of these models. Scores are rows of `full_scores_of`.
    """
    known, shared = with_ancestors(suite_families, parents)
    found = usable(scores)
    found = found[(found["noted"] == "") & ~found["model"].isin(shared)]
    by_model = public_families(set(found["model"]), parents, known)
    found = found.assign(family=found["model"].map(by_model))
    return found[["model", "family", "task", "main_score"]].reset_index(drop=True)


def with_ancestors(
    suite_families: Mapping[str, str], parents: Mapping[str, str]
) -> tuple[dict[str, str], set[str]]:
    """Add the ancestors of the suite's models, which are near-copies of them.

    Returns:
        Family by public name, including ancestors up to the next model of the suite; and the
        ancestors of models of several families, which have no family.
    """
    above: dict[str, set[str]] = {}
    for model, family in suite_families.items():
        seen = {model}
        while (model := parents.get(model, model)) not in {*seen, *suite_families}:
            seen.add(model)
            above.setdefault(model, set()).add(family)
    own = {model: min(families) for model, families in above.items() if len(families) == 1}
    return {**own, **suite_families}, set(above) - set(own)


def public_families(
    models: Collection[str], parents: Mapping[str, str], suite_families: Mapping[str, str]
) -> dict[str, str]:
    """Return a family for every public model.

    It is the suite's family of the model or of its nearest ancestor in the suite. Other models have
    the name of their oldest known ancestor, so that fine-tunes of one model are one family. The
    parent of a model is the model it was trained from (`ModelMeta.adapted_from`).
    """
    return {model: _family(model, parents, suite_families) for model in sorted(models)}


def _family(model: str, parents: Mapping[str, str], suite_families: Mapping[str, str]) -> str:
    seen: list[str] = []
    while model not in seen:
        if model in suite_families:
            return suite_families[model]
        seen.append(model)
        model = parents.get(model, model)
    return seen[-1]
