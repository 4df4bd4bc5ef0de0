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
    docs/methods.md, Joint calibration).

    Args:
        observed: (d,) z; NaN = not observed.
        noise: (d,) variances of e, at least 0; components without a finite one are not used.
        mean: (d,).
        covariance: (d, d) positive definite.
        cap: largest deviation in standard deviations of z; None = no cap. A component that
            deviates more gets an additional prior variance that reduces its deviation to the cap.
            A broken or unusual task then has little effect on the other tasks, and its own
            prediction stays near its measurement. Clipping the deviation would instead move the
            prediction of that task away from its measurement.
    """
    seen = np.isfinite(observed) & np.isfinite(noise)
    if not seen.any():
        return mean.copy(), covariance.copy()
    deviation = (observed - mean)[seen]
    if cap is not None:
        covariance = covariance.copy()
        own = np.diag(covariance)[seen] + noise[seen]
        covariance[seen, seen] += own_variance(deviation, own, cap)
    spread = covariance[np.ix_(seen, seen)] + np.diag(noise[seen])
    cross = covariance[:, seen]
    gain = np.linalg.solve(spread, cross.T).T
    posterior = covariance - gain @ cross.T
    return mean + gain @ deviation, 0.5 * (posterior + posterior.T)


def own_variance(deviation: np.ndarray, variance: np.ndarray, cap: float) -> np.ndarray:
    """Return the additional variance (n,) that reduces a deviation to `cap` standard deviations."""
    return np.maximum((deviation / cap) ** 2 - variance, 0.0)
