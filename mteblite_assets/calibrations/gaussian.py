"""Conditional distribution of a Gaussian vector given noisy values of some of its components."""

from __future__ import annotations

import numpy as np


def condition(
    observed: np.ndarray,
    noise: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    *,
    cap: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (d,) and covariance (d, d) of u given z = u + e.

    u ~ N(mean, covariance), e ~ N(0, diag(noise)) independent:
    E(u | z) = mean + C (C + D)^-1 (z - mean) over the observed components (kriging, BLUP;
    `method.md` 3.9).

    Args:
        observed: (d,) z; NaN = not observed.
        noise: (d,) variances of e, at least 0; components without a finite one are not used.
        mean: (d,).
        covariance: (d, d) positive definite.
        cap: deviations beyond this many standard deviations of z count as that many, so that a
            broken task does not drag the others along; None = no cap.
    """
    seen = np.isfinite(observed) & np.isfinite(noise)
    if not seen.any():
        return mean.copy(), covariance.copy()
    spread = covariance[np.ix_(seen, seen)] + np.diag(noise[seen])
    deviation = (observed - mean)[seen]
    if cap is not None:
        limit = cap * np.sqrt(np.diag(spread))
        deviation = np.clip(deviation, -limit, limit)
    cross = covariance[:, seen]
    gain = np.linalg.solve(spread, cross.T).T
    posterior = covariance - gain @ cross.T
    return mean + gain @ deviation, 0.5 * (posterior + posterior.T)
