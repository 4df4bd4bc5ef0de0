"""Names of the metrics of search; most have a cut `<k>`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mteblite.outcomes.areas import AREAS
from mteblite.task_types.retrieval.abstention import CONFIDENCES

SUBQUERIES = "max_over_subqueries_"

_CUTS = ("ndcg", "map", "recall", "precision", "hit_rate", "mrr")
_WITH_CONFIDENCE = tuple(c for c in _CUTS if c != "hit_rate")

_PATTERN = re.compile(
    rf"(?:{SUBQUERIES})?(?:(?:{'|'.join(_CUTS)})_at_[1-9]\d*|accuracy"
    rf"|nauc_(?:{'|'.join(_WITH_CONFIDENCE)})_at_[1-9]\d*"
    rf"_(?:{'|'.join(CONFIDENCES)}))|{'|'.join(AREAS)}"
)

METRICS = (
    *(f"{cut}_at_<k>" for cut in _CUTS),
    "accuracy",
    f"nauc_<{' or '.join(_WITH_CONFIDENCE)}>_at_<k>_<{' or '.join(CONFIDENCES)}>",
    *AREAS,
)


def has_metric(name: str) -> bool:
    """Return whether a name is a metric of search."""
    return _PATTERN.fullmatch(name) is not None


def mean_is_score(name: str) -> bool:
    """Return whether a metric is a mean over queries; areas under a curve are not."""
    return "nauc_" not in name and name not in AREAS


def check_together(task: str, names: Sequence[str]) -> None:
    """Refuse metrics of single queries together with those of merged sub-queries.

    Raises:
        ValueError: a metric does not combine with the main one, which is the first.
    """
    merged = names[0].startswith(SUBQUERIES)
    for name in names:
        if name not in AREAS and name.startswith(SUBQUERIES) != merged:
            raise ValueError(
                f"{task}: metric {name!r} is not supported: its main metric {names[0]!r} is "
                f"{'over' if merged else 'not over'} merged sub-queries, so the others must "
                f"{'begin' if merged else 'not begin'} with {SUBQUERIES!r} too"
            )
