"""Where full scores come from: own mteb runs, a folder of mteb results, the official results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.reference_scores.result_format import RefusedFile, ResultCell, ResultFile
from mteblite.suites.suite_model import mteb_name
from mteblite.suites.task_description import TaskDescription
from mteblite_resources.result_folder import folder_name, results_root
from mteblite_resources.result_reading import read_result_file

SOURCES = ("run", "local", "official")
NO_FACTS = RegistryFacts()

Facts = Callable[[], RegistryFacts]
"""mteb's registry, asked for only where a file needs it: of the old format, or without a score."""


@dataclass(frozen=True)
class FullScore:
    """A model's main score on a full task.

    Attributes:
        main_score: mean over the task's cells (split, hf_subset); a fraction.
        source: `run`, `local` or `official`.
        revision: the model's revision; several joined by "," where cells come from several.
        mteb_version: likewise.
    """

    main_score: float
    source: str
    revision: str
    mteb_version: str


class RefusedScore(ValueError):
    """A score exists but cannot be used; the message says why."""


class QuarantinedScore(RefusedScore):
    """The official results have a score that cannot be right; nothing that a user could mend."""


OfficialLookup = Callable[[str, TaskDescription], "FullScore | None"]
"""Official score of (model, task); raises QuarantinedScore where it is refused."""


class ResultsSource:
    """Full scores from several places, the first that has one wins."""

    def __init__(
        self,
        order: Sequence[str],
        *,
        run: Path | None = None,
        local: Path | None = None,
        official: OfficialLookup | None = None,
        facts: Facts = lambda: NO_FACTS,
    ) -> None:
        """Set up the chain; nothing is read yet.

        Args:
            order: some of `run`, `local`, `official`.
            run: result files of own full runs (exact revision only).
            local: result files that somebody else's mteb wrote.
            official: gives official scores, e.g. `official_lookup`.
            facts: gives mteb's registry.

        Raises:
            ValueError: an unknown source, or one without its path.
        """
        self.paths = {"run": run, "local": local}
        self.official = official
        self.facts = facts
        for name in order:
            if name not in SOURCES:
                raise ValueError(
                    f"unknown source of reference scores {name!r}; allowed: {', '.join(SOURCES)}"
                )
            if (self.official if name == "official" else self.paths[name]) is None:
                raise ValueError(
                    f"reference scores from {name!r} need a path: set it, or leave {name!r} out"
                )
        self.order = tuple(order)

    def full_score(
        self, model: str, revision: str, description: TaskDescription
    ) -> FullScore | None:
        """Return a model's full score, or None where no source has every cell.

        Args:
            model: the model's own name, variant included.
            revision: revision of its own runs (`StoredEncoder.result_revision`).
            description: the task, with the splits and subsets that are needed.

        Raises:
            QuarantinedScore: no source has a usable score and the official one is refused.
            RefusedScore: likewise, and a file of one's own is unusable; says why.
        """
        refusals: list[RefusedScore] = []
        for name in self.order:
            try:
                score = self._from(name, model, revision, description)
            except RefusedScore as error:
                refusals.append(error)
                continue
            if score is not None:
                return score
        if refusals:
            official = all(isinstance(e, QuarantinedScore) for e in refusals)
            kind = QuarantinedScore if official else RefusedScore
            raise kind("; ".join(str(e) for e in refusals))
        return None

    def _from(
        self, name: str, model: str, revision: str, description: TaskDescription
    ) -> FullScore | None:
        if name == "official":
            assert self.official is not None
            return self.official(model, description)
        folder = self.paths[name]
        assert folder is not None
        if name == "run":
            return read_full_score(folder, model, revision, description, facts=self.facts)
        return _local_score(results_root(folder), model, revision, description, self.facts)


def official_lookup(
    scores: pd.DataFrame, present_name: Callable[[str], str] = lambda name: name
) -> OfficialLookup:
    """Return what looks models up in the official scores of tasks.

    Args:
        scores: `task`, `model`, `main_score`, `revision`, `mteb_version` and `refused` (why the
            score must not be used, "" = it may).
        present_name: the name that a model's official results have now.
    """
    by_key = {(r["task"], r["model"]): r for r in scores.to_dict("records")}

    def look_up(model: str, description: TaskDescription) -> FullScore | None:
        row = by_key.get((description.task, present_name(model)))
        if row is None:
            return None
        if row["refused"] or not math.isfinite(row["main_score"]):
            reason = row["refused"] or "no number"
            raise QuarantinedScore(
                f"the official score of {model} on {description.task} is refused: {reason}"
            )
        return FullScore(row["main_score"], "official", row["revision"], row["mteb_version"])

    return look_up


def read_full_score(
    results: Path,
    model: str,
    revision: str,
    description: TaskDescription,
    source: str = "run",
    facts: Facts = lambda: NO_FACTS,
) -> FullScore | None:
    """Return the full score in a folder of mteb result files.

    Args:
        results: folder in the layout of mteb's ResultCache.
        model: the model's own name.
        revision: revision folder.
        description: the task, with the splits and subsets that are needed.
        source: what to call it.
        facts: gives mteb's registry.

    Returns:
        The mean over the needed cells; None where the file or a cell is absent.

    Raises:
        RefusedScore: the file cannot be read as mteb's, or a score is missing or NaN.
    """
    path = result_path(results, model, revision, description.task)
    if not path.exists():
        return None
    try:
        result = _read(path, facts)
    except RefusedFile as error:
        raise RefusedScore(f"{path} is no result file of mteb: {error}") from error
    # A subset that a file repeats counts once, as on the leaderboard.
    cells = {
        (cell.split, cell.hf_subset): {
            "main_score": cell.main_score,
            "refused": cell.refused,
            "mteb_version": result.mteb_version or None,
            "revision": revision,
        }
        for cell in result.cells
        if cell.entry_ix == 0
    }
    return mean_of_cells(cells, description, source, str(path))


def _read(path: Path, facts: Facts) -> ResultFile:
    """Read a file; with mteb's registry only where its main metric or task name matters."""

    def odd(cell: ResultCell) -> bool:
        return cell.main_score is None

    try:
        result = read_result_file(path, NO_FACTS)
    except OSError as error:
        raise RefusedFile(str(error)) from error
    if result.result_format == "old" or any(odd(cell) for cell in result.cells):
        return read_result_file(path, facts())
    return result


def result_path(results: Path, model: str, revision: str, task: str) -> Path:
    """Return the place of a result file, as mteb's `ResultCache.get_task_result_path` has it."""
    return results / folder_name(mteb_name(model)) / revision / f"{task}.json"


def mean_of_cells(
    cells: dict[tuple[str, str], dict[str, Any]],
    description: TaskDescription,
    source: str,
    label: str,
) -> FullScore | None:
    """Return the mean main score over a task's cells; None where a cell is absent.

    Args:
        cells: by (split, hf_subset): main_score, revision, mteb_version.
        description: the task, with the splits and subsets that are needed.
        source: what to call the source.
        label: model and place, for messages.

    Raises:
        RefusedScore: a needed cell has no number, or one that no fraction can be.
    """
    needed = [(s, h) for s in description.splits for h in description.hf_subsets]
    if not needed or any(key not in cells for key in needed):
        return None
    scores = []
    for key in needed:
        score = cells[key].get("main_score")
        if score is None or not math.isfinite(score):
            why = cells[key].get("refused") or f"it is {score}: not a number"
            raise RefusedScore(f"{label}: main score of {description.task} {key}: {why}")
        if not -1 <= score <= 1:
            raise RefusedScore(
                f"{label}: main score of {description.task} {key} is {score}: not a fraction"
            )
        scores.append(float(score))
    return FullScore(
        main_score=math.fsum(scores) / len(scores),
        source=source,
        revision=_joined(cells[key].get("revision") for key in needed),
        mteb_version=_joined(cells[key].get("mteb_version") for key in needed),
    )


def _local_score(
    folder: Path, model: str, revision: str, description: TaskDescription, facts: Facts
) -> FullScore | None:
    """The revision that is asked for; else the only one that has the task, never a guess."""
    revisions = sorted(p.parent.name for p in (folder / folder_name(mteb_name(model))).glob(
        f"*/{description.task}.json"))  # fmt: skip
    chosen = [r for r in revisions if r == revision] or revisions
    scores = [
        score
        for r in chosen
        if (score := read_full_score(folder, model, r, description, "local", facts)) is not None
    ]
    if len(scores) > 1:
        raise RefusedScore(
            f"{folder}: {model} has {description.task} in {len(scores)} revisions "
            f"({', '.join(s.revision for s in scores)}) and none is {revision}: "
            "give `revision:` for the model, or remove the others"
        )
    return scores[0] if scores else None


def _joined(values: Iterable[Any]) -> str:
    return ",".join(sorted({str(v) for v in values if v is not None}))
