"""Calibrations per task: a line from raw estimates to full scores.

MTEB-lite uses a linear calibration fitted on the reference models. Limits of the slope:
docs/methods.md, Lines per task. A new calibration is a function and one entry in CALIBRATIONS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mteblite.lines import MIN_MODELS_FOR_SLOPE, NOTHING_TO_FIT, fit_lines

INVERSE_RANGE = (0.1, 10.0)
MIN_CORRELATION = 0.3
"""With less correlation, an inverted line would amplify noise, and only an offset is fitted."""


@dataclass(frozen=True)
class Calibration:
    """full score = slope * estimate + intercept.

    Attributes:
        residual_sd: standard deviation of full score minus calibrated estimate on the training
            models, corrected for the degrees of freedom; NaN without degrees of freedom.
        n_models: number of training models.
    """

    slope: float
    intercept: float
    residual_sd: float
    n_models: int

    def apply(self, estimates: np.ndarray) -> np.ndarray:
        """Return the calibrated estimates, not clipped."""
        return self.slope * estimates + self.intercept


Line = tuple[float, float]
"""(slope, intercept)."""


def offset_line(estimates: np.ndarray, full_scores: np.ndarray) -> Line:
    """Return slope 1 and the mean difference as intercept."""
    x, y = _pairs(estimates, full_scores)
    return 1.0, float(y.mean() - x.mean())


def inverse_line(estimates: np.ndarray, full_scores: np.ndarray) -> Line:
    """Regress estimates on full scores and invert the line (classical calibration).

    Unlike `linear` it does not shrink. The result is the full score plus noise, as a joint
    calibration assumes. With too low a correlation the result is an offset.
    """
    x, y = _pairs(estimates, full_scores)
    deviation = y - y.mean()
    shared = float((deviation * (x - x.mean())).sum())
    size = float((deviation**2).sum() * ((x - x.mean()) ** 2).sum())
    if len(x) < MIN_MODELS_FOR_SLOPE or size <= 0 or shared < MIN_CORRELATION * np.sqrt(size):
        return offset_line(estimates, full_scores)
    slope = float(np.clip((deviation**2).sum() / shared, *INVERSE_RANGE))
    return slope, float(y.mean() - slope * x.mean())


def linear_line(estimates: np.ndarray, full_scores: np.ndarray) -> Line:
    """Fit by least squares; the result is an offset without spread or with under 3 models."""
    slope, intercept = fit_lines(np.asarray(estimates, float)[None, :], full_scores)
    return float(slope[0]), float(intercept[0])


def no_line(estimates: np.ndarray, full_scores: np.ndarray) -> Line:
    """Return the identity."""
    del estimates, full_scores
    return 1.0, 0.0


CALIBRATIONS: dict[str, Callable[[np.ndarray, np.ndarray], Line]] = {
    "linear": linear_line,
    "offset": offset_line,
    "none": no_line,
    "inverse": inverse_line,
}
"""(raw estimates (n_models,), full scores (n_models,)) -> the line. Models with NaN are left out.
ValueError where no model has both, except for `none`."""


def find_line(name: str) -> Callable[[np.ndarray, np.ndarray], Line]:
    """Return a calibration by name.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in CALIBRATIONS:
        raise ValueError(f"calibration {name!r} is unknown; allowed: {', '.join(CALIBRATIONS)}")
    return CALIBRATIONS[name]


def fit_calibration(name: str, estimates: np.ndarray, full_scores: np.ndarray) -> Calibration:
    """Fit a line of CALIBRATIONS to estimates (n_models,), with its residual standard deviation.

    Raises:
        ValueError: no model has both.
    """
    slope, intercept = find_line(name)(estimates, full_scores)
    x, y = _pairs(estimates, full_scores)
    residual = y - (slope * x + intercept)
    freedom = 0 if name == "none" else 1 if slope == 1.0 else 2
    left = len(x) - freedom
    sd = float(np.sqrt((residual**2).sum() / left)) if left > 0 else float("nan")
    return Calibration(slope, intercept, sd, len(x))


def _pairs(estimates: np.ndarray, full_scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates and full scores of the models that have both."""
    x, y = np.asarray(estimates, dtype=float), np.asarray(full_scores, dtype=float)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        raise ValueError(NOTHING_TO_FIT.format(n=len(y)))
    return x[known], y[known]
