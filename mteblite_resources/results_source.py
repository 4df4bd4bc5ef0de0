"""Where full scores come from: own mteb runs, a folder of mteb results, the official table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from mteblite_assets.pools.task_data import TaskDescription
from mteblite_resources.model_spec import mteb_name

SOURCES = ("run", "local", "official")

# The leaderboard's rule (mteb's `join_revisions`): one row per cell, no ablations, no repeats.
_OFFICIAL = """
SELECT task_name, split, hf_subset, main_score, revision, mteb_version
FROM read_parquet(?)
WHERE model_name = ? AND lb_pick AND experiment IS NULL AND entry_ix = 0
"""


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


class ResultsSource:
    """Full scores from several places, the first that has one wins."""

    def __init__(
        self,
        order: Sequence[str],
        *,
        run: Path | None = None,
        local: Path | None = None,
        official: Path | None = None,
    ) -> None:
        """Set up the chain; nothing is read yet.

        Args:
            order: some of `run`, `local`, `official`.
            run: result files of own full runs (exact revision only).
            local: result files that somebody else's mteb wrote.
            official: Parquet table of the official results, one row per cell.

        Raises:
            ValueError: an unknown source, or one without its path.
        """
        self.paths = {"run": run, "local": local, "official": official}
        for name in order:
            if name not in SOURCES:
                raise ValueError(
                    f"unknown source of reference scores {name!r}; allowed: {', '.join(SOURCES)}"
                )
            if self.paths[name] is None:
                raise ValueError(
                    f"reference scores from {name!r} need a path: set it, or leave {name!r} out"
                )
        self.order = tuple(order)
        self._official: dict[str, dict[str, dict[tuple[str, str], dict[str, Any]]]] = {}

    def full_score(
        self, model: str, revision: str, description: TaskDescription
    ) -> FullScore | None:
        """Return a model's full score, or None where no source has every cell.

        Args:
            model: the model's own name, variant included.
            revision: revision of its own runs (`StoredEncoder.result_revision`).
            description: the task, with the splits and subsets that are needed.

        Raises:
            RefusedScore: no source has a usable score and one has an unusable one; says why.
        """
        refusals = []
        for name in self.order:
            try:
                score = self._from(name, model, revision, description)
            except RefusedScore as error:
                refusals.append(str(error))
                continue
            if score is not None:
                return score
        if refusals:
            raise RefusedScore("; ".join(refusals))
        return None

    def _from(
        self, name: str, model: str, revision: str, description: TaskDescription
    ) -> FullScore | None:
        if name == "official":
            return self._official_score(model, description)
        folder = self.paths[name]
        assert folder is not None
        if name == "run":
            return read_full_score(folder, model, revision, description)
        return _local_score(folder, model, revision, description)

    def _official_score(self, model: str, description: TaskDescription) -> FullScore | None:
        if model not in self._official:
            self._official[model] = self._official_cells(model)
        cells = self._official[model].get(description.task)
        if cells is None:
            return None
        return mean_of_cells(cells, description, "official", f"{model}, {self.paths['official']}")

    def _official_cells(self, model: str) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
        """All cells of a model by task; one scan of the table serves all of its tasks."""
        path = self.paths["official"]
        if path is None or not path.exists():
            raise ValueError(f"no table of official scores at {path}: check the setting")
        with duckdb.connect() as con:
            rows = con.execute(_OFFICIAL, [str(path), model]).fetchall()
        cells: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        for task, split, hf_subset, score, revision, version in rows:
            cells.setdefault(task, {})[split, hf_subset] = {
                "main_score": score,
                "revision": revision,
                "mteb_version": version,
            }
        return cells


def read_full_score(
    results: Path, model: str, revision: str, description: TaskDescription, source: str = "run"
) -> FullScore | None:
    """Return the full score in a folder of mteb result files.

    Args:
        results: folder in the layout of mteb's ResultCache.
        model: the model's own name.
        revision: revision folder.
        description: the task, with the splits and subsets that are needed.
        source: what to call it.

    Returns:
        The mean over the needed cells; None where the file or a cell is absent.

    Raises:
        RefusedScore: the file cannot be read as mteb's, or a score is missing or NaN.
    """
    path = result_path(results, model, revision, description.task)
    if not path.exists():
        return None
    try:
        # The standard library accepts the bare NaN that mteb writes for other metrics.
        data = json.loads(path.read_text(encoding="utf-8"))
        cells: dict[tuple[str, str], dict[str, Any]] = {}
        for split, entries in data["scores"].items():
            for entry in entries:
                # A subset that a file repeats counts once, as on the leaderboard.
                cells.setdefault((split, entry["hf_subset"]), entry)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedScore(f"{path} is no result file of mteb 1.11 or later ({error!r})") from error
    version = data.get("mteb_version")
    cells = {
        key: {"mteb_version": version, **entry, "revision": revision}
        for key, entry in cells.items()
    }
    return mean_of_cells(cells, description, source, str(path))


def result_path(results: Path, model: str, revision: str, task: str) -> Path:
    """Return the place of a result file, as mteb's `ResultCache.get_task_result_path` has it."""
    return results / _folder_name(model) / revision / f"{task}.json"


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
            raise RefusedScore(
                f"{label}: main score of {description.task} {key} is {score}: not a number"
            )
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
    folder: Path, model: str, revision: str, description: TaskDescription
) -> FullScore | None:
    """The revision that is asked for; else the only one that has the task, never a guess."""
    revisions = sorted(p.parent.name for p in (folder / _folder_name(model)).glob(
        f"*/{description.task}.json"))  # fmt: skip
    chosen = [r for r in revisions if r == revision] or revisions
    scores = [
        score
        for r in chosen
        if (score := read_full_score(folder, model, r, description, "local")) is not None
    ]
    if len(scores) > 1:
        raise RefusedScore(
            f"{folder}: {model} has {description.task} in {len(scores)} revisions "
            f"({', '.join(s.revision for s in scores)}) and none is {revision}: "
            "give `revision:` for the model, or remove the others"
        )
    return scores[0] if scores else None


def _folder_name(model: str) -> str:
    return mteb_name(model).replace("/", "__").replace(" ", "_")


def _joined(values: Iterable[Any]) -> str:
    return ",".join(sorted({str(v) for v in values if v is not None}))
