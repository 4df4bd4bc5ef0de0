"""The official set statistics are defined on what the set selectors choose."""

from __future__ import annotations

import numpy as np
import pytest
from support.fits import fit_task
from support.zoo import observed_task

from mteblite.calibrations.variant import Variant


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("selection", ["strat", "anchorset"])
@pytest.mark.parametrize("task_type", ["STS", "PairClassification", "Clustering"])
def test_statistics_are_defined_for_every_model_and_vary(task_type, selection, cells):
    evidence = observed_task(task_type, cells)
    fitted = fit_task(evidence, Variant("anchor", "mean", selection), 20, ("s",))
    assert fitted.calibration.n_models == len(evidence.models)
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    raw = fitted.raw_many([o[places] for o in evidence.observations])
    assert np.isfinite(raw).all()
    assert np.ptp(raw) > 0.05
    # The better a model separates the items, the higher its statistic.
    assert np.corrcoef(raw, np.arange(len(raw)))[0, 1] > 0.3
