"""All protocols of a suite's validation, with shared fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.suites.method_keys import INTERVALS_FROM
from mteblite.validation.folds import (
    FRONTIER,
    MIN_FRONTIER_FAMILIES,
    NESTED,
    family_by_model,
    fold_members,
)
from mteblite.validation.lomo import Settings, predict_protocol
from mteblite.validation.nested import CHOSEN, predict_nested
from mteblite.validation.out_of_range import training_ranges
from mteblite.validation.presets import Preset
from mteblite.validation.refit import TaskRefits
from mteblite.validation.variants import control_of, draw_name, suite_variants

MIN_NESTED_FAMILIES = 3
"""Fewest families for inner folds that choose a variant."""
CHOICE_COLUMNS = ["preset", "fold", "variant", "inner_mae", "runner_up_mae"]


@dataclass(frozen=True)
class Validation:
    """Results of the protocols.

    Attributes:
        predictions: see `predict_protocol`; the nested protocol has the variant `chosen:<preset>`.
        folds: see `fold_members`.
        ranges: protocol, fold, low, high: see `training_ranges`.
        choices: CHOICE_COLUMNS; the variant that the nested protocol chose in each fold.
        absent: by protocol of the suite file, the reason for not running it.
    """

    predictions: pd.DataFrame
    folds: pd.DataFrame
    ranges: pd.DataFrame
    choices: pd.DataFrame
    absent: dict[str, str]


def validate(
    evidences: Sequence[TaskEvidence],
    chosen: Variant,
    preset: Preset | None,
    protocols: Sequence[str],
    settings: Settings,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    item_draws: int = 1,
) -> Validation:
    """Run protocols over the standard variants, those of a preset, and the suite's chosen one.

    The nested protocol chooses from the preset. `progress` gets (protocol, tasks done, all tasks).
    With `item_draws` above 1, `family_lomo` repeats the chosen variant and its control, the same
    variant with random items, with further draws of items; see `draw_name`.

    Raises:
        ValueError: see `predict_protocol`.
    """
    control = control_of(chosen)
    variants = suite_variants([*(preset.variants if preset else ()), control, chosen])
    absent = {p: why for p in protocols if (why := why_absent(p, evidences, preset))}
    refits: dict[str, TaskRefits] = {}
    frames: list[pd.DataFrame] = []
    choices = pd.DataFrame(columns=CHOICE_COLUMNS)
    run = [p for p in dict.fromkeys(protocols) if p not in absent]
    for protocol in run:
        report = partial(progress, protocol)
        if protocol == NESTED and preset is not None:
            frame, found = predict_nested(
                evidences, preset.variants, settings, refits=refits, progress=report,
                name=nested_name(preset.name), patience=preset.patience,
            )  # fmt: skip
            choices = found.assign(preset=preset.name)[CHOICE_COLUMNS]
        else:
            frame = predict_protocol(
                evidences, variants, protocol, settings, refits=refits, progress=report
            )
        frames.append(frame)
    if INTERVALS_FROM in run:
        frames += _further_draws(evidences, (chosen, control), settings, progress, item_draws)
    ranges = [training_ranges(evidences, p).assign(protocol=p) for p in run]
    return Validation(
        predictions=pd.concat(frames, ignore_index=True),
        folds=pd.concat([fold_members(evidences, p) for p in run], ignore_index=True),
        ranges=pd.concat(ranges, ignore_index=True),
        choices=choices,
        absent=absent,
    )


def _further_draws(
    evidences: Sequence[TaskEvidence],
    variants: Sequence[Variant],
    settings: Settings,
    progress: Callable[[str, int, int], None],
    item_draws: int,
) -> list[pd.DataFrame]:
    """Return the `family_lomo` predictions of item draws 1, 2, ..."""
    frames = []
    for number in range(1, item_draws):
        progress(f"item draw {number}", 0, len(evidences))
        frame = predict_protocol(
            evidences, variants, INTERVALS_FROM, replace(settings, item_draw=number)
        )
        frames.append(frame.assign(variant=[draw_name(v, number) for v in frame["variant"]]))
    return frames


def nested_name(preset: str) -> str:
    """Return the variant name of predictions by the variants that folds chose from a preset."""
    return f"{CHOSEN}:{preset}"


def why_absent(protocol: str, evidences: Sequence[TaskEvidence], preset: Preset | None) -> str:
    """Return the reason why a protocol cannot run; "" if it can."""
    count = len(set(family_by_model(evidences).values()))
    needed = {FRONTIER: MIN_FRONTIER_FAMILIES, NESTED: MIN_NESTED_FAMILIES}.get(protocol, 0)
    if count < needed:
        return f"needs at least {needed} families, there are {count}"
    if protocol == NESTED and preset is None:
        return "the suite names no preset to choose variants from"
    return ""
