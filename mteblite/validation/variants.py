"""Variants and baselines that validation compares, by name.

A variant is `<selection>/<estimator>/<set selection>`. Baselines:

- `random/mean`: K uniform random items, one entry per draw;
- `same_token/mean`: random items with the cost in tokens (or texts) of a compared selection;
- `pool/mean`: the score of the whole pool, whose error is a lower bound for selections;
- `cross_task/blup`: prediction from the model's other tasks, without items of the task.

The first three are calibrated per task like the variants; `+none` (`pool/mean+none`) is
uncalibrated, `+offset` only shifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from mteblite.calibrations.linear import find_line
from mteblite.calibrations.variant import Variant

DRAW_MARK = "#"
"""`random/mean` is the first item draw, `random/mean#01` the second, and so on."""


@dataclass(frozen=True)
class Baseline:
    """A baseline: a name in BASELINE_SOURCES, with a calibration."""

    source: str
    calibration: str = "linear"

    def __str__(self) -> str:
        name = f"{self.source}/{BASELINE_SOURCES[self.source]}"
        return name if self.calibration == "linear" else f"{name}+{self.calibration}"

    @property
    def joint(self) -> bool:
        """Whether it needs all tasks of a fold at once."""
        return self.source == CROSS_TASK


CROSS_TASK = "cross_task"
BASELINE_SOURCES = {"random": "mean", "pool": "mean", "same_token": "mean", CROSS_TASK: "blup"}
"""Baseline -> its estimator."""
COMPARED = Variant("anchor", "mean", "anchorset")
"""The default selection whose cost `same_token` has: the published one."""
SEED_VARIANTS: tuple[Variant, ...] = tuple(
    Variant(*parts)
    for parts in product(("anchor", "fisher"), ("mean", "pirt", "gp"), ("strat", "anchorset"))
)
"""The twelve variants that MTEB-lite compared (docs/methods.md, Variants and presets)."""
STRATIFIED = Variant("strat", "mean", "strat")
"""A variant for models better than every reference model (docs/methods.md, Difficulty strata)."""
BASELINES: tuple[Baseline, ...] = (
    Baseline("random"),
    Baseline("random", "none"),
    Baseline("pool"),
    Baseline("pool", "none"),
    Baseline("same_token"),
    Baseline(CROSS_TASK),
)


def suite_variants(chosen: Sequence[Variant] = ()) -> list[Variant | Baseline]:
    """Return the variants of a suite's validation: published, stratified, chosen, and baselines."""
    everything: list[Variant | Baseline] = [*SEED_VARIANTS, STRATIFIED, *chosen, *BASELINES]
    return list({str(variant): variant for variant in everything}.values())


def control_of(variant: Variant) -> Variant:
    """Return the variant with random items: the same but for what selection contributes."""
    return replace(variant, per_item_selection="random", set_selection="random")


def parse_variant(text: str) -> Variant | Baseline:
    """Return a variant or a baseline by its name.

    Raises:
        ValueError: the name is neither; the message lists allowed names.
    """
    body, _, calibration = text.partition("+")
    source, _, rest = body.partition("/")
    if BASELINE_SOURCES.get(source) == rest:
        if source == CROSS_TASK and calibration:
            raise ValueError(f"baseline {body!r} takes no calibration, got {calibration!r}")
        find_line(calibration or "linear")
        return Baseline(source, calibration or "linear")
    return Variant.parse(text)


def draw_name(name: str, draw: int) -> str:
    """Return the variant name of one item draw."""
    return name if draw == 0 else f"{name}{DRAW_MARK}{draw:02d}"


def without_draw(name: str) -> str:
    """Return the name that all item draws share."""
    return name.partition(DRAW_MARK)[0]
