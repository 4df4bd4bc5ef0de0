"""Anchor points by item parameters: k-means on (slope, intercept) instead of outcome vectors.

tinyBenchmarks' "IRT anchors" (arXiv 2402.14992, section 3.1). Two numbers per item are less noisy
than an outcome per model, and say less.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.anchor import DECIMALS, anchors
from mteblite.selections.quotas import within_strata
from mteblite.selections.selector import Selected, pool_weights


def select_anchor_irt(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator
) -> Selected:
    """Choose k anchors within the strata; items without parameters count as typical ones."""
    vectors = np.column_stack([fit.parameters.slope, fit.parameters.intercept])
    typical = np.nanmedian(vectors, axis=0)
    vectors = np.round(np.where(np.isfinite(vectors), vectors, typical), DECIMALS)
    mass = pool_weights(evidence)
    return within_strata(
        evidence,
        k,
        rng,
        lambda members, count: anchors(vectors[members], mass[members], count, rng),
    )
