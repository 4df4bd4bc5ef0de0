"""The keys of a suite file that say which methods it uses: selection to interval, and validation.

Which names there are is known to the later stages alone; `suite_file.check_methods` is handed them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

INTERVALS_FROM = "family_lomo"
"""The protocol whose residuals make the intervals of lite scores."""


class Strict(BaseModel):
    """A part of a suite file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class PerItem(Strict):
    """How items of per-item tasks are selected and turned into an estimate."""

    selection: str = "anchor"
    estimator: str = "mean"


class SetMetric(Strict):
    """How items of set-metric tasks are selected, and which statistic of them is the estimate."""

    selection: str = "anchorset"
    estimator: str = "set_statistic"


class ValidationKeys(Strict):
    """What validation does: who is held out together, and how often random items are drawn."""

    protocols: list[str] = ["family_lomo", "model_lomo", "nested_family_lomo", "frontier"]
    random_draws: int = Field(50, ge=1, le=1000)

    @field_validator("protocols")
    @classmethod
    def _intervals_need_families(cls, value: list[str]) -> list[str]:
        if INTERVALS_FROM not in value:
            raise ValueError(
                f"`{INTERVALS_FROM}` must be among the protocols: the intervals come from it"
            )
        return value


class MethodKeys(Strict):
    """The method part of a suite file.

    Attributes:
        per_item: selection and estimator of per-item tasks.
        set_metric: selection and estimator of set-metric tasks.
        calibration: from estimate to full score: per task, cross-fitted, or over all tasks.
        response_model: of items; `auto` is 2PL for outcomes of 0 and 1, else linear-Gaussian.
        preset: variants that validation compares beside the chosen and the standard ones, and
            from which the nested protocol chooses; null = none, and no nested protocol.
        allocation: `equal` takes K items of every task; `budget` shares items out over tasks by
            token cost and spread; `tokens` shares out alike, then chooses the items of a task by
            gain per token, as many as its tokens pay.
        token_budget: tokens that the selected items of all tasks may cost, without what items
            share (train rows, shared documents); null = what K items of every task cost.
        interval_level: coverage of intervals; null = 0.9, or with too few families for it a
            Student-t interval that says so. A level that is given must be one that the number of
            families allows.
        validation: protocols and random draws.
    """

    per_item: PerItem = PerItem()
    set_metric: SetMetric = SetMetric()
    calibration: str = "linear"
    response_model: str = "auto"
    preset: str | None = "seed"
    allocation: Literal["equal", "budget", "tokens"] = "equal"
    token_budget: int | None = Field(None, ge=1)
    interval_level: float | None = Field(None, gt=0.0, lt=1.0)
    validation: ValidationKeys = ValidationKeys()

    @model_validator(mode="after")
    def _budgets_are_shared_out(self) -> MethodKeys:
        if self.token_budget is not None and not self.shares_out:
            raise ValueError(
                "`token_budget` needs `allocation: budget` or `tokens`; `equal` goes by k alone"
            )
        return self

    @property
    def shares_out(self) -> bool:
        """Whether a budget of tokens is shared out over tasks."""
        return self.allocation != "equal"

    @property
    def pays_by_token(self) -> bool:
        """Whether the items of a task are chosen for tokens, not for their number."""
        return self.allocation == "tokens"
