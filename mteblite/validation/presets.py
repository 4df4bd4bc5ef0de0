"""Presets: named sets of variants, as data. `seed` is the published method, `best` a better one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from mteblite.calibrations.variant import Variant

ALLOCATIONS = ("equal", "budget")
"""`equal` takes the suite's K for every task; `budget` shares the same texts by cost and spread."""
KEYS = {"description", "allocation", "patience", "variants"}


@dataclass(frozen=True)
class Preset:
    """A named set of variants.

    Attributes:
        name: its name.
        description: one sentence.
        allocation: a name in ALLOCATIONS.
        patience: see `predict_nested`.
        variants: candidates, simplest first.
    """

    name: str
    description: str
    allocation: str
    patience: float
    variants: tuple[Variant, ...]


@cache
def packaged_presets() -> dict[str, Preset]:
    """Return the presets that come with mteblite, by name."""
    import yaml

    text = resources.files("mteblite.validation").joinpath("presets.yaml").read_text("utf-8")
    return parse_presets(yaml.safe_load(text))


def find_preset(name: str, presets: Mapping[str, Preset] | None = None) -> Preset:
    """Return a preset by name.

    Raises:
        ValueError: it is unknown.
    """
    known = packaged_presets() if presets is None else presets
    if name not in known:
        raise ValueError(f"preset {name!r} is unknown; allowed: {', '.join(sorted(known))}")
    return known[name]


def parse_presets(value: Mapping[str, Any]) -> dict[str, Preset]:
    """Read presets from the content of a YAML file.

    Raises:
        ValueError: a key is unknown or missing, an allocation unknown, a list empty, or a variant
            wrong; the message names preset, key and what is allowed.
    """
    return {str(name): _preset(str(name), body) for name, body in value.items()}


def _preset(name: str, body: Mapping[str, Any]) -> Preset:
    """One preset."""
    if not isinstance(body, dict) or set(body) != KEYS:
        found = ", ".join(sorted(map(str, body))) if isinstance(body, dict) else repr(body)
        raise ValueError(f"preset {name}: expected keys {', '.join(sorted(KEYS))}; got {found}")
    if body["allocation"] not in ALLOCATIONS:
        allowed = ", ".join(ALLOCATIONS)
        raise ValueError(
            f"preset {name}: allocation {body['allocation']!r} is unknown; allowed: {allowed}"
        )
    if not isinstance(body["patience"], int | float) or not 0 <= body["patience"] <= 10:
        raise ValueError(
            f"preset {name}: patience must be a number from 0 to 10, got {body['patience']!r}"
        )
    if not isinstance(body["variants"], list) or not body["variants"]:
        raise ValueError(f"preset {name}: variants must be a list of at least one variant")
    try:
        variants = tuple(Variant.parse(str(text)) for text in body["variants"])
    except ValueError as error:
        raise ValueError(f"preset {name}: {error}") from error
    patience = float(body["patience"])
    return Preset(name, str(body["description"]), body["allocation"], patience, variants)
