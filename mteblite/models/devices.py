"""Names of torch devices, and whether this machine has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mteblite.models.loaded_tensors import ModelError, first_line

ALLOWED = "cpu, cuda, cuda:<number>, mps or xpu; several with commas, such as cuda:0,cuda:1"
_DEVICE = re.compile(r"(cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?)")


def split_devices(value: str | None) -> tuple[str, ...]:
    """Return the devices of a comma-separated list, in order; () for None or "".

    Raises:
        ValueError: a name is none of torch's devices.
    """
    names = tuple(d.strip() for d in (value or "").split(",") if d.strip())
    unknown = next((name for name in names if not _DEVICE.fullmatch(name)), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is no device; allowed: {ALLOWED}")
    return names


def require_devices(names: Sequence[str]) -> None:
    """Check that this machine has the devices, before any weights are loaded.

    Raises:
        ModelError: it has not; names the variable, the device and those that there are.
    """
    import torch

    for name in names:
        try:
            torch.empty(1, device=name)
        except (RuntimeError, AssertionError) as error:
            there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
            raise ModelError(
                f"MTEBLITE_DEVICE is {name!r}, which this machine cannot use "
                f"({first_line(error)}); it has {', '.join(there)}: set one of these, or unset "
                "the variable"
            ) from error
