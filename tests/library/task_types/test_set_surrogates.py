"""Surrogates of set metrics against scikit-learn, and calmer than the official statistics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import fit_task, predicted_by
from support.zoo import observed_task

from mteblite.calibrations.variant import Variant
from mteblite.outcomes.areas import weighted_auc
from mteblite.task_types.clustering.surrogate import check_not_degenerate
from mteblite.task_types.scoring import set_statistic, surrogate_statistic


def rows_of(n: int, **columns) -> pd.DataFrame:
    base = {"item_id": [f"i{i}" for i in range(n)], "hf_subset": "s", "split": "test"}
    return pd.DataFrame({**base, "stratum": "x", "gold": 0.0, **columns})


def test_auc_equals_scikit_learn_with_ties_and_weights():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 6, size=30) / 5
        positive = rng.random(30) < 0.4
        weights = rng.random(30) + 0.1
        expected = roc_auc_score(positive, scores, sample_weight=weights)
        assert weighted_auc(scores, positive, weights) == pytest.approx(expected)
    assert np.isnan(weighted_auc(scores, np.ones(30, bool), weights))


def test_pairs_use_cosine_and_are_averaged_over_cells():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    observations = rng.random((40, 5))
    gold = rng.integers(0, 2, size=40).astype(float)
    subset = np.repeat(["a", "b"], 20)
    found = surrogate_statistic(
        "PairClassification", observations, rows_of(40, gold=gold, hf_subset=subset), np.ones(40)
    )
    cells = [roc_auc_score(gold[s], observations[s, 1]) for s in (slice(20), slice(20, 40))]
    assert found == pytest.approx(np.mean(cells))


def test_sts_is_a_weighted_correlation():
    rng = np.random.default_rng(2)
    gold, cosine, weights = rng.random(25), rng.random(25), rng.integers(1, 4, size=25)
    found = surrogate_statistic("STS", cosine[:, None], rows_of(25, gold=gold), weights / 10)
    expected = np.corrcoef(np.repeat(cosine, weights), np.repeat(gold, weights))[0, 1]
    assert found == pytest.approx(expected)
    flat = surrogate_statistic("STS", np.ones((25, 1)), rows_of(25, gold=gold), np.ones(25))
    assert np.isnan(flat)


def test_clustering_compares_pairs_of_one_label_with_pairs_of_two():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(3)
    labels = np.repeat(["a", "b", "c"], 4)
    vectors = rng.normal(size=(12, 6))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.triu_indices(12, 1)
    expected = roc_auc_score(labels[first] == labels[second], (unit @ unit.T)[first, second])
    found = surrogate_statistic("Clustering", vectors, rows_of(12, stratum=labels), np.ones(12))
    assert found == pytest.approx(expected)


def test_other_types_have_no_surrogate():
    with pytest.raises(
        ValueError, match=r"'Retrieval' has no set statistic.* have one: PairClassification, STS, C"
    ):
        surrogate_statistic("Retrieval", np.ones((2, 1)), rows_of(2), np.ones(2))
    with pytest.raises(ValueError, match="set estimator 'magic' is unknown"):
        Variant.parse("anchor/mean/strat:magic")
    assert str(Variant.parse("anchor/mean/strat:surrogate+offset")) == (
        "anchor/mean/strat:surrogate+offset"
    )


@pytest.mark.parametrize("task_type", ["STS", "PairClassification", "Clustering"])
def test_surrogates_follow_the_official_metric_of_the_whole_pool_at_least_as_well(task_type):
    evidence = observed_task(task_type, cells=1)
    everything = np.full(240, 1 / 240)
    truth = [set_statistic(task_type, o, evidence.items, everything) for o in evidence.observations]
    quality = {"set_statistic": [], "surrogate": []}
    for seed in range(4):
        for estimator, found in quality.items():
            variant = Variant("anchor", "mean", "strat", set_estimator=estimator)
            fitted = fit_task(evidence, variant, 20, (seed,))
            places = [int(i[1:]) for i in fitted.selection["item_id"]]
            raw = fitted.raw_many([o[places] for o in evidence.observations])
            found.append(np.corrcoef(raw, truth)[0, 1] ** 2)
    assert np.mean(quality["surrogate"]) > np.mean(quality["set_statistic"]) - 0.02
    assert np.mean(quality["surrogate"]) > 0.5


def test_surrogates_are_calibrated_to_the_official_metric():
    evidence = observed_task("STS", cells=1)
    variant = Variant.parse("anchor/mean/strat:surrogate")
    fitted = fit_task(evidence, variant, 40, (0,))
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    predicted = [predicted_by(fitted, o[places]) for o in evidence.observations]
    assert np.mean(predicted) == pytest.approx(evidence.full_scores.mean(), abs=0.02)
    assert fitted.calibration_row()["estimator"] == "surrogate"


def test_v_measure_of_one_document_per_label_is_refused():
    with pytest.raises(ValueError, match="5 selected documents have 5 different labels: V-measure"):
        check_not_degenerate(rows_of(5, stratum=list("abcde")))
    check_not_degenerate(rows_of(5, stratum=list("abcda")))
    evidence = observed_task("Clustering", cells=1)
    own = evidence.items.assign(stratum=[f"label{i}" for i in range(240)])
    with pytest.raises(ValueError, match="Sim: the 10 selected documents"):
        fit_task(
            dataclasses.replace(evidence, items=own), Variant("anchor", "mean", "random"), 10, ()
        )
