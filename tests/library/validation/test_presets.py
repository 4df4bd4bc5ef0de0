"""Presets are data: what is packaged is right, and mistakes are named."""

from __future__ import annotations

import pytest

from mteblite.validation.presets import find_preset, packaged_presets, parse_presets
from mteblite.validation.variants import SEED_VARIANTS

GOOD = {"description": "d", "allocation": "equal", "patience": 1, "variants": ["anchor/mean/strat"]}


def test_packaged_presets():
    presets = packaged_presets()
    assert set(presets) == {"seed", "best"}
    assert set(presets["seed"].variants) == set(SEED_VARIANTS)
    assert presets["seed"].allocation == "equal"
    assert all(v.calibration == "blup" for v in presets["best"].variants)
    assert find_preset("best") == presets["best"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {**GOOD, "extra": 1},
            "preset p: expected keys allocation, description, patience, variants; got",
        ),
        ({"variants": []}, "got variants"),
        (None, "got None"),
        ({**GOOD, "allocation": "fair"}, "allocation 'fair' is unknown; allowed: equal, budget"),
        ({**GOOD, "patience": -1}, "patience must be a number from 0 to 10, got -1"),
        ({**GOOD, "variants": []}, "at least one variant"),
        ({**GOOD, "variants": ["anchor/mean"]}, "preset p: variant 'anchor/mean' has 2 parts"),
    ],
)
def test_mistakes_are_named(body, message):
    with pytest.raises(ValueError, match=message):
        parse_presets({"p": body})


def test_unknown_presets_are_named():
    with pytest.raises(ValueError, match="preset 'worst' is unknown; allowed: best, seed"):
        find_preset("worst")
