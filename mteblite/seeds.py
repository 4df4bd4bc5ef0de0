"""Random generators from stable keys, so that no result depends on order, machine or time."""

from __future__ import annotations

import hashlib

import numpy as np


def stable_seed(*keys: str | int) -> int:
    """Return a 63-bit seed that depends on the keys alone."""
    text = "\x1f".join(str(k) for k in keys)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(*keys: str | int) -> np.random.Generator:
    """Return a generator seeded by the keys, e.g. `generator(0, "STS12", "pool")`."""
    return np.random.default_rng(stable_seed(*keys))
