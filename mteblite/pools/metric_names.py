"""Which metrics a task type has: those that mteb reports, and areas under a precision-recall curve.

A suite file may ask for any of them (`metrics:` of a task); names are checked before anything is
drawn or encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SUBQUERIES = "max_over_subqueries_"

AREAS = ("auprc", "auprc_trapezoid")
"""Area under the precision-recall curve over all (query, candidate) pairs of a cell, or over its
labelled pairs: average precision as scikit-learn defines it, and the trapezoidal area, which
interpolates and is larger."""

CUTS = ("ndcg", "map", "recall", "precision", "hit_rate", "mrr")
CONFIDENCES = ("max", "std", "diff1")

_SEARCH = re.compile(
    rf"(?:{SUBQUERIES})?(?:(?:{'|'.join(CUTS)})_at_[1-9]\d*|accuracy"
    rf"|nauc_(?:{'|'.join(c for c in CUTS if c != 'hit_rate')})_at_[1-9]\d*"
    rf"_(?:{'|'.join(CONFIDENCES)}))|{'|'.join(AREAS)}"
)
_SEARCH_NAMES = (
    *(f"{cut}_at_<k>" for cut in CUTS),
    "accuracy",
    f"nauc_<{' or '.join(c for c in CUTS if c != 'hit_rate')}>_at_<k>_<{' or '.join(CONFIDENCES)}>",
    *AREAS,
)

PAIR_SIMILARITIES = ("similarity", "cosine", "manhattan", "euclidean", "dot")
PAIR_MEASURES = ("ap", "accuracy", "f1", "precision", "recall")

NAMES: dict[str, tuple[str, ...]] = {
    "Retrieval": _SEARCH_NAMES,
    "Reranking": _SEARCH_NAMES,
    "Classification": (
        "accuracy",
        "f1",
        "f1_weighted",
        "precision",
        "precision_weighted",
        "recall",
        "recall_weighted",
        "ap",
        "ap_weighted",
    ),
    "PairClassification": (
        *(f"{s}_{m}" for s in ("max", *PAIR_SIMILARITIES) for m in PAIR_MEASURES),
        *AREAS,
    ),
    "STS": (
        "spearman",
        "pearson",
        *(
            f"{s}_{c}"
            for s in ("cosine", "manhattan", "euclidean")
            for c in ("spearman", "pearson")
        ),
    ),
    "Clustering": ("v_measure", "v_measure_std", "ami", "ami_std"),
    "Summarization": (
        "cosine_spearman",
        "cosine_pearson",
        "spearman",
        "pearson",
        "dot_spearman",
        "dot_pearson",
    ),
    "BitextMining": ("f1", "accuracy", "precision", "recall"),
}
"""Names by task type; in those of search `<k>` is any cut from 1 on."""


def check_metrics(task: str, task_type: str, names: Iterable[str]) -> None:
    """Check that a task's type has these metrics, the main one first.

    Raises:
        ValueError: one is unknown; the message lists what the type has.
    """
    asked = list(names)
    for name in asked:
        if not _known(name, task_type):
            raise ValueError(
                f"{task}: metric {name!r} is not supported; {task_type} has: "
                f"{', '.join(NAMES[task_type])}"
            )
    merged = asked[0].startswith(SUBQUERIES) if asked else False
    for name in asked:
        if name not in AREAS and name.startswith(SUBQUERIES) != merged:
            raise ValueError(
                f"{task}: metric {name!r} is not supported: its main metric {asked[0]!r} is "
                f"{'over' if merged else 'not over'} merged sub-queries, so the others must "
                f"{'begin' if merged else 'not begin'} with {SUBQUERIES!r} too"
            )


def _known(name: str, task_type: str) -> bool:
    if task_type in ("Retrieval", "Reranking"):
        return _SEARCH.fullmatch(name) is not None
    return name in NAMES[task_type]
