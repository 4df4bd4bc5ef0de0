"""Half-widths of intervals from held-out residuals, one score per family.

Split conformal prediction: with the greatest absolute residual of each of n families, which are
exchangeable over families, the ceil((n + 1) * level)-th smallest covers a new family's models with
at least that level. It exists only up to level n / (n + 1); below that number of families a
Student-t width steps in and says so (`method.md` 3.12).
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
        value: the half-width; NaN where there is no way to tell.
        method: `conformal_family`, `student_t` (fallback, no guarantee) or `none`.
        n_families: families it rests on.
    """

    value: float
    method: str
    n_families: int


def half_width(residuals: np.ndarray, families: np.ndarray, level: float = LEVEL) -> HalfWidth:
    """Return the half-width at a level.

    Args:
        residuals: (n,) predicted minus actual of held-out models; NaN is left out.
        families: (n,) family (or fold) of each.
        level: coverage, in (0, 1).

    Raises:
        ValueError: the level is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"interval level is {level}: it must lie between 0 and 1, e.g. 0.9")
    known = np.isfinite(residuals)
    worst, mean_square, _ = _by_family(residuals[known], families[known])
    return _half_width(worst, mean_square, level)


def held_out_coverage(
    residuals: np.ndarray, families: np.ndarray, level: float = LEVEL
) -> tuple[float, int]:
    """Return the share of models inside intervals made from the other families, and their number.

    NaN with under 3 families, where the others say nothing about spread between families.
    """
    known = np.isfinite(residuals)
    values = np.abs(residuals[known])
    worst, mean_square, family = _by_family(residuals[known], families[known])
    if len(worst) < 3:
        return float("nan"), int(known.sum())
    others = [
        _half_width(np.delete(worst, i), np.delete(mean_square, i), level).value
        for i in range(len(worst))
    ]
    return float((values <= np.array(others)[family] + 1e-12).mean()), int(known.sum())


def _half_width(worst: np.ndarray, mean_square: np.ndarray, level: float) -> HalfWidth:
    """The half-width from each family's worst and mean squared residual."""
    n = len(worst)
    rank = math.ceil((n + 1) * level - 1e-9)
    if 0 < rank <= n:
        return HalfWidth(float(np.partition(worst, rank - 1)[rank - 1]), CONFORMAL, n)
    if n < 2:
        return HalfWidth(float("nan"), NONE, n)
    from scipy.special import stdtrit

    # Residuals are held out, so their mean square holds the bias too; each family counts once.
    spread = math.sqrt(float(mean_square.mean()) * (1.0 + 1.0 / n))
    return HalfWidth(float(stdtrit(n - 1, 0.5 + level / 2.0)) * spread, STUDENT_T, n)


def _by_family(
    residuals: np.ndarray, families: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Greatest absolute and mean squared residual per family; family code of each residual."""
    names, code = np.unique(np.asarray(families, dtype=str), return_inverse=True)
    worst = np.zeros(len(names))
    np.maximum.at(worst, code, np.abs(residuals))
    square = np.bincount(code, weights=residuals**2, minlength=len(names))
    return worst, square / np.maximum(np.bincount(code, minlength=len(names)), 1), code
