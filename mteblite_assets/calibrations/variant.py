"""A variant: how per-item tasks are selected and estimated, and how set metrics are selected."""

from __future__ import annotations

from dataclasses import dataclass

from mteblite_assets.calibrations.linear import find_calibration
from mteblite_assets.calibrations.registry import SET_STATISTIC, find_estimator
from mteblite_assets.selections.registry import SELECTORS


@dataclass(frozen=True)
class Variant:
    """Written `anchor/mean/anchorset`, with `+offset` or `+none` for another calibration.

    Attributes:
        per_item_selection: selector of per-item tasks.
        estimator: estimator of per-item tasks.
        set_selection: selector of set-metric tasks, estimated by the official statistic.
        calibration: `linear`, `offset` or `none`, for both kinds.

    Raises:
        ValueError: a part is unknown.
    """

    per_item_selection: str
    estimator: str
    set_selection: str
    calibration: str = "linear"

    def __post_init__(self) -> None:
        for name in (self.per_item_selection, self.set_selection):
            if name not in SELECTORS:
                allowed = ", ".join(SELECTORS)
                raise ValueError(f"selection {name!r} is unknown; allowed: {allowed}")
        find_estimator(self.estimator)
        find_calibration(self.calibration)

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read `<selection>/<estimator>/<set selection>`, the form that `str` writes."""
        body, _, calibration = text.partition("+")
        parts = body.split("/")
        if len(parts) != 3:
            raise ValueError(
                f"variant {text!r} has {len(parts)} parts; expected "
                "<selection>/<estimator>/<set selection>, e.g. anchor/mean/anchorset"
            )
        return cls(parts[0], parts[1], parts[2], calibration or "linear")

    def __str__(self) -> str:
        body = f"{self.per_item_selection}/{self.estimator}/{self.set_selection}"
        return body if self.calibration == "linear" else f"{body}+{self.calibration}"

    def selection(self, kind: str) -> str:
        """Return the selector for a task kind."""
        return self.per_item_selection if kind == "per_item" else self.set_selection

    def estimator_for(self, kind: str) -> str:
        """Return the estimator for a task kind."""
        return self.estimator if kind == "per_item" else SET_STATISTIC
