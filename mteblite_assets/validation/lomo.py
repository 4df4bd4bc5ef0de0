"""Leave-one-family-out (or model-out) validation of whole variants.

For every fold and task, the training models alone restandardise abilities, refit items, reselect
and recalibrate; then the held-out models are predicted from their outcomes on the selected items.
MTEB-lite method section 5; `method.md` 3.11. Nested and frontier protocols call `TaskRefits` with
training masks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite_assets.calibrations.registry import Statistic
from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.item_parameters.evidence import TaskEvidence
from mteblite_assets.item_parameters.fitting import usable_models
from mteblite_assets.outcomes.scoring import set_statistic
from mteblite_assets.validation.folds import Fold, family_by_model, make_folds
from mteblite_assets.validation.refit import TaskRefits
from mteblite_assets.validation.variants import Baseline, draw_name, parse_variant

MIN_TRAINING_MODELS = 2
"""With fewer training models of a task in a fold, the task has no prediction there."""
COLUMNS = ["protocol", "variant", "fold", "model", "task", "predicted", "actual", "n_train"]

Choice = str | Variant | Baseline


def predict_held_out(
    evidences: Sequence[TaskEvidence],
    variants: Sequence[Choice],
    k_by_task: Mapping[str, int],
    protocol: str,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
    *,
    refits: dict[str, TaskRefits] | None = None,
    statistic: Statistic = set_statistic,
    response_model: str = "auto",
    random_draws: int = 50,
) -> pd.DataFrame:
    """Predict every reference model without itself and its family (or without itself).

    Args:
        evidences: the suite's tasks with the kept reference models.
        variants: variants and baselines, parsed or by name.
        k_by_task: items to select per task.
        protocol: `family_lomo` or `model_lomo`.
        seed: enters every random draw; use the one the release is made with.
        progress: called with (tasks done, all tasks) after each task.
        refits: pass the same dict to several calls (protocols, variants) to share their work.
        statistic: the official set statistic.
        response_model: see `fit_items`.
        random_draws: draws of `random/mean`; each is a variant name of its own, see `draw_name`.

    Returns:
        COLUMNS; one row per variant, fold, task and held-out model with a full score and
        outcomes, sorted. `predicted` is NaN where an estimate is undefined. A task that has fewer
        than 2 training models in a fold has no row there.

    Raises:
        ValueError: no evidence or variant, a task twice or without K, a model in two families,
            fewer than two families (or models).
    """
    choices = [parse_variant(v) if isinstance(v, str) else v for v in variants]
    _check(evidences, choices, k_by_task)
    folds = make_folds(protocol, family_by_model(evidences))
    shared = {} if refits is None else refits
    blocks: list[pd.DataFrame] = []
    from threadpoolctl import threadpool_limits

    # On matrices this small, BLAS threads cost up to 20 times what they save.
    with threadpool_limits(limits=1):
        for done, evidence in enumerate(sorted(evidences, key=lambda e: e.task), 1):
            if evidence.task not in shared:
                shared[evidence.task] = TaskRefits(
                    evidence=_usable(evidence),
                    k=k_by_task[evidence.task],
                    seed=seed,
                    statistic=statistic,
                    response_model=response_model,
                    random_draws=random_draws,
                )
            for fold in folds:
                blocks += _predict_fold(shared[evidence.task], fold, choices)
            if progress is not None:
                progress(done, len(evidences))
    if not blocks:
        return pd.DataFrame(columns=COLUMNS)
    frame = pd.concat(blocks, ignore_index=True).assign(protocol=protocol)
    frame = frame.astype(dict.fromkeys(COLUMNS[:5], "category"))
    frame = frame[COLUMNS].sort_values(COLUMNS[:5], ignore_index=True)
    return frame.astype(dict.fromkeys(COLUMNS[:5], "str"))


def _predict_fold(
    task: TaskRefits, fold: Fold, choices: Sequence[Variant | Baseline]
) -> list[pd.DataFrame]:
    """The rows of one task in one fold."""
    evidence = task.evidence
    held_out = np.array([model in fold.held_out for model in evidence.models], dtype=bool)
    n_train = int((~held_out).sum())
    if not held_out.any() or n_train < MIN_TRAINING_MODELS:
        return []
    names: list[str] = []
    rows: list[np.ndarray] = []
    for name, predicted in task.predict_many(~held_out, choices).items():
        names += [draw_name(name, number) for number in range(len(predicted))]
        rows.append(predicted[:, held_out])
    block = np.concatenate(rows)
    models = np.array(evidence.models, dtype=object)[held_out]
    return [
        pd.DataFrame(
            {
                "variant": np.repeat(np.array(names, dtype=object), len(models)),
                "fold": fold.name,
                "model": np.tile(models, len(names)),
                "task": evidence.task,
                "predicted": block.reshape(-1),
                "actual": np.tile(evidence.full_scores[held_out], len(names)),
                "n_train": n_train,
            }
        )
    ]


def _usable(evidence: TaskEvidence) -> TaskEvidence:
    """Leave out models without a full score or without outcomes."""
    keep = usable_models(evidence)
    return evidence if keep.all() else evidence.only_models(keep)


def _check(
    evidences: Sequence[TaskEvidence],
    choices: Sequence[Variant | Baseline],
    k_by_task: Mapping[str, int],
) -> None:
    """Refuse a suite that cannot be validated."""
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
