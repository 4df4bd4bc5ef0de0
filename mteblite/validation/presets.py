"""Presets: named sets of variants, as data. `seed` is the published method, `best` a better one."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import BeforeValidator, Field, InstanceOf

from mteblite.calibrations.variant import Variant
from mteblite.suites.method_keys import Strict

Named = Annotated[InstanceOf[Variant], BeforeValidator(lambda text: Variant.parse(str(text)))]


class Preset(Strict):
    """A named set of variants.

    Attributes:
        description: one sentence.
        patience: see `predict_nested`.
        variants: candidates, simplest first.
    """

    name: str
    description: str
    patience: float = Field(ge=0, le=10)
    variants: tuple[Named, ...] = Field(min_length=1)


@cache
def packaged_presets() -> dict[str, Preset]:
    """Return the presets that come with mteblite, by name."""
    import yaml

    text = resources.files("mteblite.validation").joinpath("presets.yaml").read_text("utf-8")
    return {name: Preset(name=name, **body) for name, body in yaml.safe_load(text).items()}


def find_preset(name: str) -> Preset:
    """Return a preset by name.

    Raises:
        ValueError: the name is unknown.
    """
    known = packaged_presets()
    if name not in known:
        raise ValueError(f"preset {name!r} is unknown; allowed: {', '.join(sorted(known))}")
    return known[name]
