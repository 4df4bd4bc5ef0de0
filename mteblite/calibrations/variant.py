"""A variant: selectors and estimators of per-item and set-metric tasks, and a calibration."""

from __future__ import annotations

from dataclasses import dataclass

from mteblite.calibrations.levels import ALL_CALIBRATIONS
from mteblite.calibrations.registry import (
    AIMS_AT_FULL_SCORE,
    SET_STATISTIC,
    find_estimator,
    find_set_estimator,
)
from mteblite.selections.registry import SELECTORS
from mteblite.suites.method_keys import MethodKeys


@dataclass(frozen=True)
class Variant:
    """A combination of methods, written `<selection>/<estimator>/<set selection>`.

    Another calibration than `linear` follows a plus sign, as in `anchor/mean/anchorset+offset`.
    Another set estimator follows a colon, as in `anchor/mean/anchorset:surrogate`.

    The calibration is in `levels.ALL_CALIBRATIONS` and applies to tasks of both kinds.

    Raises:
        ValueError: a part is unknown.
    """

    per_item_selection: str
    estimator: str
    set_selection: str
    calibration: str = "linear"
    set_estimator: str = SET_STATISTIC

    def __post_init__(self) -> None:
        for part, name, known in (
            ("selection", self.per_item_selection, SELECTORS),
            ("selection", self.set_selection, SELECTORS),
            ("calibration", self.calibration, ALL_CALIBRATIONS),
        ):
            if name not in known:
                raise ValueError(f"{part} {name!r} is unknown; allowed: {', '.join(known)}")
        find_estimator(self.estimator)
        find_set_estimator(self.set_estimator)

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
        set_selection, _, set_estimator = parts[2].partition(":")
        calibration, set_estimator = calibration or "linear", set_estimator or SET_STATISTIC
        return cls(parts[0], parts[1], set_selection, calibration, set_estimator)

    @classmethod
    def chosen(cls, file: MethodKeys) -> Variant:
        """Return the variant of a suite file."""
        return cls(
            file.per_item.selection,
            file.per_item.estimator,
            file.set_metric.selection,
            file.calibration,
            file.set_metric.estimator,
        )

    def __str__(self) -> str:
        body = f"{self.per_item_selection}/{self.estimator}/{self.set_selection}"
        if self.set_estimator != SET_STATISTIC:
            body = f"{body}:{self.set_estimator}"
        return body if self.calibration == "linear" else f"{body}+{self.calibration}"

    def selection(self, kind: str) -> str:
        """Return the selector for a task kind."""
        return self.per_item_selection if kind == "per_item" else self.set_selection

    def estimator_for(self, kind: str) -> str:
        """Return the estimator for a task kind."""
        return self.estimator if kind == "per_item" else self.set_estimator

    def calibration_for(self, estimator: str) -> str:
        """Return the calibration of an estimator: none where it estimates the full score itself."""
        if self.calibration == "linear" and estimator in AIMS_AT_FULL_SCORE:
            return "none"
        return self.calibration
