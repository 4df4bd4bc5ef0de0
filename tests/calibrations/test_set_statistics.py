"""The official set statistics are defined on what the set selectors choose."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from zoo import make_items, make_task

from mteblite_assets.calibrations.fitted_task import fit_task
from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.item_parameters.evidence import TaskEvidence


def observed_task(task_type: str, cells: int) -> TaskEvidence:
    """A set-metric task whose observations are what the official statistic expects."""
    evidence = make_task(task_type=task_type, n_items=240)
    rng = np.random.default_rng(0)
    items = make_items(240, cells=cells, labels=12 if task_type == "Clustering" else 2)
    label = items["stratum"].str.removeprefix("label").astype(int).to_numpy()
    centers = rng.normal(size=(12, 8))
    observations = []
    for quality in np.linspace(0.2, 4.0, len(evidence.models)):
        if task_type == "Clustering":
            seen = quality * centers[label] + rng.normal(size=(240, 8))
        else:
            target = items["gold"].to_numpy() / 5 if task_type == "STS" else label
            seen = (quality * target + rng.normal(size=240))[:, None].repeat(5, axis=1)
        observations.append(seen.astype(np.float32))
    if task_type == "PairClassification":
        items["gold"] = label.astype(float)
    return dataclasses.replace(evidence, items=items, observations=tuple(observations))


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
