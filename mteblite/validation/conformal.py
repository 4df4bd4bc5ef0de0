"""Half-widths of intervals from held-out residuals; families, not models, are the sample.

Errors of the models of a family are correlated, so residuals are exchangeable only over families.
Hierarchical conformal prediction (Lee, Barber and Willett, arXiv 2306.06342) gives the residuals of
each of n families a mass of 1 / (n + 1), and infinity the same mass. The half-width is the smallest
value with a mass of `level`. It covers a model of a new family with at least this probability and
at most 2 / (n + 1) more. With families of one model it is the ceil((n + 1) * level)-th smallest
residual. The worst residual of each family would cover all models of a new family at once, which
is too wide for one lite score.

The half-width exists up to level n / (n + 1). With fewer families, a Student-t width replaces it
and has another method name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEVEL = 0.9
CONFORMAL = "conformal_family"
STUDENT_T = "student_t"
NONE = "none"


@dataclass(frozen=True)
class HalfWidth:
    """Half-width of an interval.

    Attributes:
        value: the half-width; NaN with under 2 families.
        method: `conformal_family`, `student_t` (fallback, no guarantee) or `none`.
        n_families: number of families with a residual.
    """

    value: float
    method: str
    n_families: int


def half_width(residuals: np.ndarray, families: np.ndarray, level: float = LEVEL) -> HalfWidth:
    """Return the half-width at a level.

    Args:
        residuals: (n,) predicted minus actual of held-out models; NaN is left out.
        families: (n,) family (or fold) of each model.
        level: coverage, in (0, 1).

    Raises:
        ValueError: the level is not in (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"interval level is {level}: it must lie between 0 and 1, e.g. 0.9")
    known = np.isfinite(residuals)
    values, family, weights = _by_family(residuals[known], families[known])
    n = int(family.max(initial=-1)) + 1
    found, exists = _quantiles(values, weights[None], n, level)
    if exists[0]:
        return HalfWidth(float(found[0]), CONFORMAL, n)
    if n < 2:
        return HalfWidth(float("nan"), NONE, n)
    return HalfWidth(float(_student_t(values, weights[None], n, level)[0]), STUDENT_T, n)


def families_needed(level: float) -> int:
    """Return the fewest families for a conformal interval of a level."""
    return math.ceil(level / (1.0 - level) - 1e-9)


def check_level(level: float, n_families: int) -> None:
    """Check that there are enough families for a conformal interval of a level.

    Raises:
        ValueError: fewer than level / (1 - level) families; the message names the needed number.
    """
    needed = families_needed(level)
    if n_families < needed:
        highest = n_families / (n_families + 1)
        raise ValueError(
            f"interval_level {level:g} needs held-out models of at least {needed} families, there "
            f"are {n_families}: add reference models of further families, ask for at most "
            f"{math.floor(highest * 1000) / 1000:g}, or leave interval_level out"
        )


def held_out_coverage(residuals: np.ndarray, families: np.ndarray) -> tuple[float, int]:
    """Return the share of models inside LEVEL intervals of the other families, and their number.

    NaN with under 3 families, because one other family has no spread between families.
    """
    known = np.isfinite(residuals)
    values, family, weights = _by_family(residuals[known], families[known])
    n = int(family.max(initial=-1)) + 1
    if n < 3:
        return float("nan"), int(known.sum())
    # Row f: the residuals of all families but f.
    others = np.where(family == np.arange(n)[:, None], 0.0, weights)
    found, exists = _quantiles(values, others, n - 1, LEVEL)
    widths = np.where(exists, found, _student_t(values, others, n - 1, LEVEL))
    return float((values <= widths[family] + 1e-12).mean()), int(known.sum())


def _quantiles(
    values: np.ndarray, weights: np.ndarray, n_families: int, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row of weights the smallest value with enough mass, and whether it exists.

    Values (n,) ascend. In a row of weights (n_rows, n), those of each of n families sum to 1.
    """
    enough = np.cumsum(weights, axis=1) >= level * (n_families + 1) - 1e-9
    exists = np.asarray(enough.any(axis=1))
    if len(values) == 0:
        return np.full(len(weights), np.nan), exists
    return np.where(exists, values[np.argmax(enough, axis=1)], np.nan), exists


def _student_t(
    values: np.ndarray, weights: np.ndarray, n_families: int, level: float
) -> np.ndarray:
    """Return Student-t half-widths (n_rows,) from mean squares; each family counts once."""
    from scipy.special import stdtrit

    # Residuals are held out, so their mean square includes the bias.
    spread = np.sqrt(weights @ values**2 / n_families * (1.0 + 1.0 / n_families))
    return np.asarray(stdtrit(n_families - 1, 0.5 + level / 2.0) * spread)


def _by_family(
    residuals: np.ndarray, families: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return absolute residuals ascending, the family code of each, and 1 / size of its family."""
    code = np.unique(np.asarray(families, dtype=str), return_inverse=True)[1]
    size = np.bincount(code)
    values = np.abs(residuals)
    order = np.lexsort((code, values))
    return values[order], code[order], 1.0 / size[code[order]]
