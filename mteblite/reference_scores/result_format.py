"""Read an mteb result file: its cells, with repairs, or the reason for refusing it.

Two formats are read: that of mteb 1.11 and later (`scores`: split -> list of subsets) and that of
earlier versions (`mteb_dataset_name`, one mapping per split). The old format is converted as in
mteb's `TaskResult._convert_from_before_v1_11_0`. Where mteb finds no main score because the metric
was renamed, the score under the old name is taken, and the cell records it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mteblite.reference_scores.registry_facts import RegistryFacts

OLD_PREFIXES = {
    "cos_sim": "cosine",
    "manhattan": "manhattan",
    "euclidean": "euclidean",
    "dot": "dot",
    "max": "max",
    "similarity": "similarity",
}
"""Similarities under which the old format nests metrics, with their present prefix."""

RENAMED_METRICS = {
    "map_at_1000": ("map",),
    "max_over_subqueries_map_at_1000": ("map",),
    "mrr_at_1000": ("mrr",),
    "max_ap": ("cosine_ap", "dot_ap", "euclidean_ap", "manhattan_ap", "similarity_ap"),
}
"""Main metrics with their former names; of several scores the largest counts."""

OLD_SUBSETS = {
    "MLSUMClusteringP2P": {"default": "fr"},
    "MLSUMClusteringS2S": {"default": "fr"},
    "XPQARetrieval": {"fr": "fra-fra"},
}
"""Subsets of the old format with their present names, as in mteb."""

MLSUM_VERSIONS = ("1.1.2.dev0", "1.1.3.dev0")


class ResultCell(NamedTuple):
    """One (split, subset) of a result file.

    Attributes:
        entry_ix: number of earlier entries of the same subset in the file.
        main_score: a fraction; None without a number.
        repaired: how the score was found, where it needed a repair, else "".
        refused: the reason for a missing score, else "".
    """

    split: str
    hf_subset: str
    entry_ix: int
    main_score: float | None
    repaired: str = ""
    refused: str = ""


@dataclass(frozen=True)
class ResultFile:
    """A result file as read.

    Attributes:
        task_name: the task's present name.
        result_format: `new` or `old`.
        repaired: a repair of the whole file, e.g. of a renamed task; else "".
        n_cells: number of cells, where `cells` has been emptied.
    """

    task_name: str
    mteb_version: str
    dataset_revision: str
    result_format: str
    cells: tuple[ResultCell, ...]
    repaired: str = ""
    n_cells: int = 0

    @property
    def n_missing(self) -> int:
        """Number of cells without a score."""
        return [cell.main_score for cell in self.cells].count(None)


class RefusedFile(ValueError):
    """A file without results; the message is the reason."""


def read_result(data: Any, facts: RegistryFacts) -> ResultFile:
    """Return the contents of a decoded result file.

    Args:
        data: the decoded JSON; bare NaN allowed.
        facts: mteb's registry, for renamed tasks and the main metric of the old format.

    Raises:
        RefusedFile: the file has another format, or no scores.
    """
    if not isinstance(data, Mapping):
        raise RefusedFile(f"a {type(data).__name__}, no result file of mteb")
    old = "scores" not in data
    named = data.get("mteb_dataset_name") if old else data.get("task_name")
    if not isinstance(named, str) or not named:
        raise RefusedFile("neither `task_name` with `scores` nor `mteb_dataset_name`")
    task = facts.task_name(named)
    try:
        cells = tuple(_old_cells(data, task, facts) if old else _new_cells(data, task, facts))
    except (TypeError, AttributeError, KeyError) as error:
        raise RefusedFile(f"scores not in a format of mteb ({error!r})") from error
    if not cells:
        raise RefusedFile("no scores in it")
    return ResultFile(
        task_name=task,
        mteb_version=str(data.get("mteb_version") or ""),
        dataset_revision=str(data.get("dataset_revision") or ""),
        result_format="old" if old else "new",
        cells=cells,
        repaired="" if task == named else f"task {named} is {task} now",
    )


def _new_cells(data: Mapping[str, Any], task: str, facts: RegistryFacts) -> Iterator[ResultCell]:
    for split, entries in data["scores"].items():
        seen: dict[str, int] = {}
        for entry in entries:
            subset = str(entry["hf_subset"])
            place = seen.get(subset, 0)
            seen[subset] = place + 1
            score = entry.get("main_score")
            if isinstance(score, float) and math.isfinite(score):  # nearly all
                yield ResultCell(split, subset, place, score)
            else:
                yield _cell(split, subset, place, entry, facts.task_metrics.get(task, ""))


def _old_cells(data: Mapping[str, Any], task: str, facts: RegistryFacts) -> Iterator[ResultCell]:
    metric = facts.task_metrics.get(task, "")
    for split, subsets in _old_splits(data).items():
        for name, metrics in subsets.items():
            subset = _present_subset(task, name, str(data.get("mteb_version")))
            yield _cell(split, subset, 0, _flat(metrics), metric)


def _old_splits(data: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return split -> subset -> metrics; metrics without a subset belong to `default`."""
    splits = {
        split: {k: v for k, v in metrics.items() if k != "evaluation_time"}
        for split, metrics in data.items()
        if isinstance(metrics, Mapping) and metrics
    }
    own = {"v_measures", *OLD_PREFIXES}
    nested = any(
        isinstance(value, Mapping) and key not in own
        for metrics in splits.values()
        for key, value in metrics.items()
    )
    if not nested:
        return {split: {"default": metrics} for split, metrics in splits.items()}
    return {
        split: {k: dict(v) for k, v in metrics.items() if isinstance(v, Mapping)}
        for split, metrics in splits.items()
    }


def _present_subset(task: str, subset: str, version: str) -> str:
    if task.startswith("MLSUM") and version not in MLSUM_VERSIONS:
        return subset
    return OLD_SUBSETS.get(task, {}).get(subset, subset)


def _flat(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Turn `{"cos_sim": {"ap": x}}` into `{"cosine_ap": x}`."""
    flat: dict[str, Any] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            flat |= {f"{OLD_PREFIXES.get(name, name)}_{k}": v for k, v in value.items()}
        else:
            flat[name] = value
    return flat


def _cell(split: str, subset: str, place: int, metrics: Mapping[str, Any], main: str) -> ResultCell:
    """Return a cell whose main score may be absent, not a number, or under a former name."""
    for name in ("main_score", main):
        if metrics.get(name) is not None:
            return _checked(split, subset, place, name, metrics[name])
    nested = _flat(metrics)
    former = [n for n in RENAMED_METRICS.get(main, ()) if nested.get(n) is not None]
    if nested.get(main) is not None:
        former = [main]
    scores = {n: nested[n] for n in former if isinstance(nested[n], int | float)}
    if scores:
        best = max(scores, key=lambda n: scores[n])
        note = f"main score {main} taken from `{best}`"
        return _checked(split, subset, place, best, scores[best])._replace(repaired=note)
    return ResultCell(
        split, subset, place, None, refused=f"no main score ({main or 'unknown metric'})"
    )


def _checked(split: str, subset: str, place: int, name: str, value: Any) -> ResultCell:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and abs(value) <= sys.float_info.max:  # JSON's integers have no limit
        return ResultCell(split, subset, place, float(value))
    return ResultCell(
        split, subset, place, None, refused=f"{name} is {str(value)[:40]}: not a number"
    )
