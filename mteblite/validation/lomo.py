"""Leave-one-family-out (or model-out, or frontier) validation of whole variants.

For every fold and task, abilities, item parameters, selection and calibration come from the
training models alone. The held-out models are predicted from their outcomes on the selected items.
See docs/methods.md, Protocols. `nested.py` chooses the variant inside each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.registry import Statistic
from mteblite.calibrations.task_fit import TaskFits
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import usable_models
from mteblite.selections.item_costs import item_costs
from mteblite.task_types.scoring import set_statistic
from mteblite.validation.folds import Fold, family_by_model, make_folds, mean_scores
from mteblite.validation.joint_folds import JointFolds, PublicScores
from mteblite.validation.refit import TaskRefits
from mteblite.validation.threads import in_threads
from mteblite.validation.variants import COMPARED, Baseline, draw_name, parse_variant

MIN_TRAINING_MODELS = 2
"""With fewer training models of a task in a fold, the task has no prediction there."""
COLUMNS = ["protocol", "variant", "fold", "model", "task", "predicted", "actual", "n_train"]

Choice = str | Variant | Baseline


@dataclass(frozen=True)
class Settings:
    """Settings of all folds of a validation.

    Attributes:
        k_by_task: items to select per task.
        seed: part of the key of every random draw.
        public: full scores of further models, for joint calibrations.
        statistic: the official set statistic.
        response_model: see `fit_items`.
        random_draws: draws of `random/mean`; each has a variant name, see `draw_name`.
        token_costs: by task, (n_items,) tokens of each pool item in order of item_id, for
            `same_token/mean`. Other tasks count texts by type.
        compared: variant whose selection sets the budget of `same_token/mean`.
        workers: threads that share the tasks; None = one per core, at most MAX_WORKERS.
        k_of_fold: fold -> items per task, under a token budget; random baselines use `k_by_task`.
        by_token: select items up to the tokens of K average items, see `choose`.
        suite: part of the key of the selections' draws, as in the release; "" without a release.
        item_draw: number of the item draw; 0 is that of the release.
    """

    k_by_task: Mapping[str, int]
    seed: int
    public: PublicScores | None = None
    statistic: Statistic = set_statistic
    response_model: str = "auto"
    random_draws: int = 50
    token_costs: Mapping[str, np.ndarray] = field(default_factory=dict)
    compared: Variant = COMPARED
    workers: int | None = None
    k_of_fold: Callable[[Fold], Mapping[str, int]] | None = None
    by_token: bool = False
    suite: str = ""
    item_draw: int = 0

    @property
    def rng_keys(self) -> tuple[str | int, ...]:
        """Keys of the selections' draws; those of item draw 0 are the release's."""
        keys = (self.suite, self.seed) if self.suite else (self.seed,)
        return (*keys, "item draw", self.item_draw) if self.item_draw else keys

    def counts(self, fold: Fold) -> Mapping[str, int]:
        """Return the number of items of each task in a fold."""
        return self.k_by_task if self.k_of_fold is None else self.k_of_fold(fold)


def predict_protocol(
    evidences: Sequence[TaskEvidence],
    variants: Sequence[Choice],
    protocol: str,
    settings: Settings,
    *,
    refits: dict[str, TaskRefits] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Predict the held-out models of every fold of a protocol.

    Args:
        evidences: the suite's tasks with the kept reference models.
        variants: variants and baselines, parsed or by name.
        protocol: a name in `folds.PROTOCOLS`; for `nested_family_lomo` see `predict_nested`.
        settings: settings of all folds.
        refits: cache of the refits by task; several calls may share one dict.
        progress: called with (tasks done, all tasks) after each task.

    Returns:
        COLUMNS; one row per variant, fold, task and held-out model with a full score and
        outcomes, sorted. `predicted` is NaN where an estimate is undefined. A task that has fewer
        than 2 training models in a fold has no row there.

    Raises:
        ValueError: no evidence or variant, a task twice or without K, a model in two families,
            fewer than two families (or models).
    """
    choices = parse_choices(variants)
    check_suite(evidences, choices, settings.k_by_task)
    folds = make_folds(protocol, family_by_model(evidences), mean_scores(evidences))
    shared = {} if refits is None else refits
    frame = predict_folds(evidences, choices, folds, settings, shared, progress)
    return ordered(frame.assign(protocol=protocol))


def parse_choices(variants: Sequence[Choice]) -> list[Variant | Baseline]:
    """Return variants and baselines, parsed where they are names."""
    return [parse_variant(v) if isinstance(v, str) else v for v in variants]


def predict_folds(
    evidences: Sequence[TaskEvidence],
    choices: Sequence[Variant | Baseline],
    folds: Sequence[Fold],
    settings: Settings,
    refits: dict[str, TaskRefits],
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return COLUMNS without `protocol`, unsorted, of any folds; see `predict_protocol`."""
    from threadpoolctl import threadpool_limits

    single = [c for c in choices if not _is_joint(c)]
    joint = JointFolds(evidences, [c for c in choices if _is_joint(c)], settings.public)
    for evidence in evidences:
        refits.setdefault(evidence.task, refits_of(evidence, settings))

    def of_task(task: str) -> list[Block]:
        found = []
        for fold in folds:
            refits[task].fits.k = settings.counts(fold)[task]
            found += _predict_fold(refits[task], fold, single)
            joint.add(refits[task], fold, MIN_TRAINING_MODELS)
        refits[task].fits.forget_training()
        return found

    tasks = sorted(e.task for e in evidences)
    blocks: list[Block] = []
    # For such small matrices, BLAS threads cost up to 20 times their gain. So tasks run in threads.
    with threadpool_limits(limits=1):
        for done, found in enumerate(in_threads(of_task, tasks, settings.workers), 1):
            blocks += found
            if progress is not None:
                progress(done, len(tasks))
        frames = [*_frames(blocks), *joint.predict(settings.workers)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS[1:])


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order of their keys, with COLUMNS."""
    if frame.empty:
        return pd.DataFrame(columns=COLUMNS)
    frame = frame.astype(dict.fromkeys(COLUMNS[:5], "category"))
    frame = frame[COLUMNS].sort_values(COLUMNS[:5], ignore_index=True)
    return frame.astype(dict.fromkeys(COLUMNS[:5], "str"))


def _is_joint(choice: Variant | Baseline) -> bool:
    return choice.joint if isinstance(choice, Baseline) else choice.calibration in JOINT


def refits_of(evidence: TaskEvidence, settings: Settings) -> TaskRefits:
    """Return the refits of one task, of the models with a full score and outcomes."""
    keep, tokens = usable_models(evidence), settings.token_costs.get(evidence.task)
    usable = evidence if keep.all() else evidence.only_models(keep)
    by_token = settings.by_token
    fits = TaskFits(
        evidence=usable,
        k=settings.k_by_task[evidence.task],
        rng_keys=settings.rng_keys,
        statistic=settings.statistic,
        response_model=settings.response_model,
        costs=item_costs(usable.task_type, len(usable.items), tokens) if by_token else None,
    )
    return TaskRefits(
        fits,
        seed=settings.seed,
        random_draws=settings.random_draws,
        token_costs=tokens,
        compared=settings.compared,
    )


Block = dict[str, np.ndarray]
"""Columns of some rows."""


def _predict_fold(
    task: TaskRefits, fold: Fold, choices: Sequence[Variant | Baseline]
) -> list[Block]:
    """Return the rows of one task in one fold."""
    evidence = task.evidence
    held_out = np.array([model in fold.held_out for model in evidence.models], dtype=bool)
    train = np.array([fold.trains(model) for model in evidence.models], dtype=bool)
    if not choices or not held_out.any() or train.sum() < MIN_TRAINING_MODELS:
        return []
    names: list[str] = []
    rows: list[np.ndarray] = []
    for name, predicted in task.predict_many(train, choices).items():
        names += [draw_name(name, number) for number in range(len(predicted))]
        rows.append(predicted[:, held_out])
    block = np.concatenate(rows)
    models = np.array(evidence.models, dtype=object)[held_out]
    return [
        {
            "variant": np.repeat(np.array(names, dtype=object), len(models)),
            "fold": np.full(block.size, fold.name, dtype=object),
            "model": np.tile(models, len(names)),
            "task": np.full(block.size, evidence.task, dtype=object),
            "predicted": block.reshape(-1),
            "actual": np.tile(evidence.full_scores[held_out], len(names)),
            "n_train": np.full(block.size, train.sum()),
        }
    ]


def _frames(blocks: Sequence[Block]) -> list[pd.DataFrame]:
    """Return all blocks as one frame, if there are any, because many small frames are slow."""
    if not blocks:
        return []
    names = list(blocks[0])
    return [pd.DataFrame({name: np.concatenate([b[name] for b in blocks]) for name in names})]


def check_suite(
    evidences: Sequence[TaskEvidence],
    choices: Sequence[Variant | Baseline],
    k_by_task: Mapping[str, int],
) -> None:
    """Check that there are tasks, each once and with its K, and variants."""
    if not evidences or not choices:
        raise ValueError(
            f"validation needs tasks and variants, got {len(evidences)} tasks and "
            f"{len(choices)} variants"
        )
    seen: set[str] = set()
    for evidence in evidences:
        if evidence.task in seen or evidence.task not in k_by_task:
            problem = "is given twice" if evidence.task in seen else "has no K"
            raise ValueError(f"task {evidence.task!r} {problem}: give each task once, with its K")
        seen.add(evidence.task)
