"""The sources of full scores: own runs of mteb, a folder of mteb results, official results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mteblite.files import read_json, sha256_of, write_json
from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.reference_scores.result_format import RefusedFile, ResultCell, ResultFile
from mteblite.suites.suite_model import mteb_name
from mteblite.suites.task_description import TaskDescription
from mteblite_resources.result_folder import folder_name, results_root
from mteblite_resources.result_reading import read_result_file

SOURCES = ("run", "local", "official")
NO_FACTS = RegistryFacts()
CHECKSUMS = ".checksums"
"""File beside the result files of own runs: their SHA-256 by name."""

Facts = Callable[[], RegistryFacts]
"""Returns mteb's registry; called only for files of the old format and cells without a score."""


@dataclass(frozen=True)
class FullScore:
    """A model's main score on a full task.

    Attributes:
        main_score: mean over the task's cells (split, hf_subset); a fraction.
        source: `run`, `local` or `official`.
        revision: the model's revision; several joined by "," where cells come from several.
        mteb_version: the same for versions of mteb.
    """

    main_score: float
    source: str
    revision: str
    mteb_version: str


class RefusedScore(ValueError):
    """A score exists but cannot be used; the message has the reason."""


class QuarantinedScore(RefusedScore):
    """The official score is in quarantine, which a user cannot change."""


OfficialLookup = Callable[[str, TaskDescription], "FullScore | None"]
"""Returns the official score of (model, task); raises QuarantinedScore where it is refused."""


class ResultsSource:
    """Full scores of several sources; the first source with a score takes precedence."""

    def __init__(
        self,
        order: Sequence[str],
        *,
        run: Path | None = None,
        local: Path | None = None,
        official: OfficialLookup | None = None,
        facts: Facts = lambda: NO_FACTS,
    ) -> None:
        """Check the sources; nothing is read yet.

        Args:
            order: some of `run`, `local`, `official`, by precedence.
            run: result files of own full runs (exact revision only).
            local: result files of other runs of mteb.
            official: returns official scores, e.g. `official_lookup`.
            facts: returns mteb's registry.

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
                    f"reference scores from {name!r} need a path: set it, or remove {name!r} from "
                    "the order"
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
            RefusedScore: no source has a usable score and an own file is unusable.
        """
        refusals: list[RefusedScore] = []
        for name in self.order:
            try:
                score = self._from(name, model, revision, description)
                if score is not None:
                    return score
            except RefusedScore as error:
                refusals.append(error)
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
            _check_own_run(result_path(folder, model, revision, description.task))
            return read_full_score(folder, model, revision, description, facts=self.facts)
        return _local_score(results_root(folder), model, revision, description, self.facts)


def official_lookup(
    scores: pd.DataFrame, present_name: Callable[[str], str] = lambda name: name
) -> OfficialLookup:
    """Return a function that looks up a model's official score of a task.

    Args:
        scores: `task`, `model`, `main_score`, `revision`, `mteb_version` and `refused` (the reason
            not to use the score, else "").
        present_name: maps a model to the present name of its official results.
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
        source: name of the source.
        facts: returns mteb's registry.

    Returns:
        The mean over the needed cells; None where the file or a cell is absent.

    Raises:
        RefusedScore: it is not a result file of mteb, or a score is missing or NaN.
    """
    path = result_path(results, model, revision, description.task)
    if not path.exists():
        return None
    try:
        result = _read(path, facts)
    except RefusedFile as error:
        raise RefusedScore(f"{path} is no result file of mteb: {error}") from error
    # The first entry of a repeated subset counts, as on the leaderboard.
    cells = {(cell.split, cell.hf_subset): cell for cell in result.cells if cell.entry_ix == 0}
    needed = [(s, h) for s in description.splits for h in description.hf_subsets]
    if not needed or any(key not in cells for key in needed):
        return None
    scores = [
        _usable_score(cells[key], f"{path}: main score of {description.task}") for key in needed
    ]
    return FullScore(math.fsum(scores) / len(scores), source, revision, result.mteb_version)


def _usable_score(cell: ResultCell, label: str) -> float:
    score, key = cell.main_score, (cell.split, cell.hf_subset)
    if score is None or not math.isfinite(score):
        raise RefusedScore(f"{label} {key}: {cell.refused or f'it is {score}: not a number'}")
    if not -1 <= score <= 1:
        raise RefusedScore(f"{label} {key} is {score}: not a fraction")
    return float(score)


def _read(path: Path, facts: Facts) -> ResultFile:
    """Read a file; with mteb's registry only where the main metric or task name is needed."""
    try:
        result = read_result_file(path, NO_FACTS)
    except OSError as error:
        raise RefusedFile(str(error)) from error
    if result.result_format == "old" or any(cell.main_score is None for cell in result.cells):
        return read_result_file(path, facts())
    return result


def result_path(results: Path, model: str, revision: str, task: str) -> Path:
    """Return the path of a result file, like mteb's `ResultCache.get_task_result_path`."""
    return results / folder_name(mteb_name(model)) / revision / f"{task}.json"


def record_checksum(path: Path) -> None:
    """Record the checksum of a result file that a run has just written, beside it."""
    record = path.with_name(CHECKSUMS)
    write_json(record, {**read_json(record), path.name: sha256_of(path)})


def _check_own_run(path: Path) -> None:
    """Refuse a result file that is not what its run wrote; files without a record are taken.

    Raises:
        RefusedScore: names the file.
    """
    recorded = read_json(path.with_name(CHECKSUMS)).get(path.name)
    if recorded is not None and path.exists() and sha256_of(path) != recorded:
        raise RefusedScore(
            f"{path} does not hold what the run of mteb wrote: delete it, and mteb is run again"
        )


def _local_score(
    folder: Path, model: str, revision: str, description: TaskDescription, facts: Facts
) -> FullScore | None:
    """Return the score of the given revision, else of the only revision that has the task."""
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
            "set `revision:` of the model, or remove the other results"
        )
    return scores[0] if scores else None
