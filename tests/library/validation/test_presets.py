"""Presets are data: what is packaged is right, and mistakes are named."""

from __future__ import annotations

import pytest

from mteblite.validation.presets import Preset, find_preset, packaged_presets
from mteblite.validation.variants import SEED_VARIANTS

GOOD = {"name": "p", "description": "d", "patience": 1, "variants": ["anchor/mean/strat"]}


def test_packaged_presets():
    presets = packaged_presets()
    assert set(presets) == {"seed", "best"}
    assert set(presets["seed"].variants) == set(SEED_VARIANTS)
    # The choice inside folds can fall back on random items with a line per task.
    assert str(presets["best"].variants[0]) == "random/mean/random:surrogate"
    assert {v.calibration for v in presets["best"].variants} == {"linear", "blup"}
    assert find_preset("best") == presets["best"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({**GOOD, "extra": 1}, "extra"),
        ({"variants": []}, "description"),
        ({**GOOD, "patience": -1}, "patience"),
        ({**GOOD, "variants": []}, "variants"),
        ({**GOOD, "variants": ["anchor/mean"]}, "variant 'anchor/mean' has 2 parts"),
    ],
)
def test_mistakes_are_named(body, message):
    with pytest.raises(ValueError, match=message):
        Preset.model_validate(body)


def test_unknown_presets_are_named():
    with pytest.raises(ValueError, match="preset 'worst' is unknown; allowed: best, seed"):
        find_preset("worst")
