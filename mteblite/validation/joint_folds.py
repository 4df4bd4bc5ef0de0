"""Joint calibrations inside validation folds, over all tasks of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from mteblite.calibrations.blup import Blup, JointData, JointPrediction
from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.task_covariance import TaskCovariance
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.suites.means import macro_weights
from mteblite.validation.cross_task import predict_from_others
from mteblite.validation.folds import Fold, family_by_model
from mteblite.validation.refit import TaskRefits
from mteblite.validation.threads import in_threads
from mteblite.validation.variants import Baseline

MIN_PUBLIC_TASKS = 2


@dataclass(frozen=True)
class PublicScores:
    """Full scores of models without item outcomes, for the covariance of tasks.

    Attributes:
        table: model, family, and one column of full scores per task; NaN = none.
    """

    table: pd.DataFrame

    def without(
        self, tasks: Sequence[str], models: set[str], families: set[str]
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return scores (n, n_tasks) and families of all models but these and these families."""
        keep = ~self.table["model"].isin(models) & ~self.table["family"].isin(families)
        rows = self.table.loc[keep]
        scores = rows.reindex(columns=list(tasks)).to_numpy(dtype=float)
        enough = np.isfinite(scores).sum(axis=1) >= min(MIN_PUBLIC_TASKS, len(tasks))
        return scores[enough], tuple(rows["family"].astype(str).to_numpy()[enough])


@dataclass
class JointFolds:
    """Collects the estimates for joint calibrations task by task, then predicts fold by fold.

    Attributes:
        evidences: the suite's tasks.
        choices: variants with a joint calibration, and the baseline `cross_task/blup`.
        public: full scores of further models.
    """

    evidences: Sequence[TaskEvidence]
    choices: Sequence[Variant | Baseline]
    public: PublicScores | None = None
    _folds: dict[str, Fold] = field(default_factory=dict)
    _starts: dict[tuple[str, str, str], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _places: dict[str, np.ndarray] = field(default_factory=dict)
    _public: dict[tuple[str, ...], tuple[np.ndarray, tuple[str, ...]]] = field(default_factory=dict)
    _priors: dict[tuple[str, ...], TaskCovariance] = field(default_factory=dict)
    predictions: dict[tuple[str, str], JointPrediction] = field(default_factory=dict)
    """(fold, variant) -> predictions of the fold's held-out models, in order of their names."""

    def add(self, task: TaskRefits, fold: Fold, min_training: int) -> None:
        """Add one task of one fold; a task with fewer training models is left out."""
        models = task.evidence.models
        train = np.array([fold.trains(model) for model in models], dtype=bool)
        self._folds[fold.name] = fold
        if train.sum() < min_training:
            return
        for choice in self.choices:
            key = (fold.name, _body(choice), task.evidence.task)
            if key not in self._starts:
                self._starts[key] = self._wide(task, *task.start(train, choice))

    def predict(self, workers: int | None = None) -> list[pd.DataFrame]:
        """Return the rows of all folds and variants; `workers` threads share the folds."""
        if not self.choices:
            return []

        def of_fold(fold: Fold) -> list[pd.DataFrame]:
            return [block for choice in self.choices for block in self._fold(fold, choice)]

        found = in_threads(of_fold, list(self._folds.values()), workers)
        return [block for blocks in found for block in blocks]

    def training(self, fold: Fold, choice: Variant | Baseline) -> tuple[list[str], JointData]:
        """Return the tasks with training models in a fold, and the data of these models."""
        tasks = self._known_tasks(fold, choice)
        place = [self._tasks.index(t) for t in tasks]
        # A model without any full score must not reduce the weight of its family's other models.
        scored = np.isfinite(self._scores[:, place]).any(axis=1)
        train = np.array([fold.trains(m) for m in self._models]) & scored
        starts = np.column_stack([self._starts[fold.name, _body(choice), t][1] for t in tasks])
        data = self._data(fold, tasks, train, starts[train])
        # Variants of a fold differ only in `cross_fitted`, so they share the prior.
        key = (fold.name, *tasks)
        if key not in self._priors:
            self._priors[key] = data.fitted_prior()
        return tasks, replace(data, prior=self._priors[key])

    def held_out(
        self, fold: Fold, choice: Variant | Baseline
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Return names, estimates and full scores (n_models, n_tasks) of a fold's models."""
        tasks = self._known_tasks(fold, choice)
        rows = np.array([m in fold.held_out for m in self._models])
        starts = np.column_stack([self._starts[fold.name, _body(choice), t][0] for t in tasks])
        place = np.array([self._tasks.index(t) for t in tasks])
        models = [m for m, h in zip(self._models, rows, strict=True) if h]
        return models, starts[rows], self._scores[np.ix_(rows, place)]

    def _known_tasks(self, fold: Fold, choice: Variant | Baseline) -> list[str]:
        return [t for t in self._tasks if (fold.name, _body(choice), t) in self._starts]

    def _fold(self, fold: Fold, choice: Variant | Baseline) -> list[pd.DataFrame]:
        """Return the rows of one variant in one fold."""
        if not self._known_tasks(fold, choice):
            return []
        tasks, data = self.training(fold, choice)
        names, estimates, actual = self.held_out(fold, choice)
        blup = Blup.fit(data)
        alone = isinstance(choice, Baseline)
        found = predict_from_others(blup, estimates) if alone else blup.predict(estimates)
        self.predictions[fold.name, str(choice)] = found
        bounds = np.array([legal_range(self._types[t]) for t in tasks])
        predicted = np.clip(found.mean, bounds[:, 0], bounds[:, 1])
        rows, columns = np.nonzero(np.isfinite(actual) & np.isfinite(estimates))
        n_train = np.isfinite(data.scores).sum(axis=0)
        frame = pd.DataFrame(
            {
                "variant": str(choice),
                "fold": fold.name,
                "model": np.array(names, dtype=object)[rows],
                "task": np.array(tasks, dtype=object)[columns],
                "predicted": predicted[rows, columns],
                "actual": actual[rows, columns],
                "n_train": n_train[columns],
            }
        )
        return [frame]

    def _data(
        self, fold: Fold, tasks: Sequence[str], train: np.ndarray, cross_fitted: np.ndarray
    ) -> JointData:
        """Return the data of a fold's training models."""
        families = self._families
        place = np.array([self._tasks.index(t) for t in tasks])
        public = np.empty((0, len(tasks)))
        public_families: tuple[str, ...] = ()
        if self.public is not None:
            hidden = {families[m] for m in fold.held_out | fold.excluded}
            key = (*tasks, "", *sorted(hidden))
            if key not in self._public:
                self._public[key] = self.public.without(tasks, set(self._models), hidden)
            public, public_families = self._public[key]
            if fold.hides_better:
                weights = macro_weights(tasks, self._types)
                kept = ~above_all(public, self._scores[np.ix_(train, place)], weights)
                public = public[kept]
                public_families = tuple(f for f, k in zip(public_families, kept, strict=True) if k)
        return JointData(
            cross_fitted=cross_fitted,
            scores=self._scores[np.ix_(train, place)],
            families=tuple(families[m] for m, t in zip(self._models, train, strict=True) if t),
            public_scores=public,
            public_families=public_families,
        )

    def _wide(
        self, task: TaskRefits, estimates: np.ndarray, cross_fitted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return both over all models of the suite; NaN for models that the task lacks."""
        evidence = task.evidence
        if evidence.task not in self._places:
            place = {model: i for i, model in enumerate(self._models)}
            self._places[evidence.task] = np.array([place[m] for m in evidence.models])
        wide = np.full((2, len(self._models)), np.nan)
        wide[:, self._places[evidence.task]] = estimates, cross_fitted
        return wide[0], wide[1]

    def __post_init__(self) -> None:
        self._families = family_by_model(self.evidences)
        self._models = sorted({m for e in self.evidences for m in e.models})
        self._tasks = sorted(e.task for e in self.evidences)
        self._types = types_of(self.evidences)
        by_task = {e.task: dict(zip(e.models, e.full_scores, strict=True)) for e in self.evidences}
        self._scores = np.array(
            [[by_task[t].get(m, np.nan) for t in self._tasks] for m in self._models], dtype=float
        )
        self._scores[~np.isfinite(self._scores)] = np.nan


def above_all(scores: np.ndarray, others: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which models are above each of some others (n_models,), on the tasks of both.

    Args:
        scores: (n_models, n_tasks); NaN = none.
        others: (n_others, n_tasks); NaN = none. One without a common task is below.
        weights: (n_tasks,) weights of the macro mean.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = scores[:, None, :] - others[None, :, :]
        mass = (np.isfinite(gaps) * weights).sum(axis=2)
        mean = np.nansum(gaps * weights, axis=2) / mass
    found: np.ndarray = (~(mean <= 0)).all(axis=1)
    return found


def _body(choice: Variant | Baseline) -> str:
    """Return a variant's name without its calibration, on which the start does not depend."""
    return str(choice).partition("+")[0]
