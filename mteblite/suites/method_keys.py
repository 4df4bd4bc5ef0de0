"""The keys of a suite file that choose methods, from selection to intervals and validation.

The later stages define the allowed names. `suite_file.check_methods` gets them as an argument.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

INTERVALS_FROM = "family_lomo"
"""The protocol whose residuals give the intervals of lite scores."""


class Strict(BaseModel):
    """A part of a suite file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class PerItemKeys(Strict):
    """Selection and estimator of per-item tasks."""

    selection: str = "anchor"
    estimator: str = "mean"


class SetMetricKeys(Strict):
    """Selection and estimator (a statistic of the selected items) of set-metric tasks."""

    selection: str = "anchorset"
    estimator: str = "set_statistic"


class ValidationKeys(Strict):
    """Protocols of validation, and numbers of item draws.

    Attributes:
        random_draws: item draws of the random baselines.
        item_draws: item draws of the suite's own variant and of its control, the same with random
            items. Intervals contain their spread.
    """

    protocols: list[str] = ["family_lomo", "model_lomo", "nested_family_lomo", "frontier"]
    random_draws: int = Field(50, ge=1, le=1000)
    item_draws: int = Field(10, ge=1, le=100)

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
        preset: further variants that validation compares. The nested protocol chooses from them.
            null = no further variants and no nested protocol.
        allocation: `equal` takes K items of every task. `budget` divides a token budget over the
            tasks by token cost and spread. `tokens` does the same, then selects items of a task by
            gain per token until its tokens are spent.
        token_budget: tokens that the selected items of all tasks may cost. Texts that items share
            (train rows, shared documents) do not count. null = the cost of K items of every task.
        interval_level: coverage of intervals; the number of families must allow it. null = 0.9,
            or a Student-t interval, marked as such, where families are too few for 0.9.
        validation: protocols and numbers of item draws.
    """

    per_item: PerItemKeys = PerItemKeys()
    set_metric: SetMetricKeys = SetMetricKeys()
    calibration: str = "linear"
    response_model: str = "auto"
    preset: str | None = "seed"
    allocation: Literal["equal", "budget", "tokens"] = "equal"
    token_budget: int | None = Field(None, ge=1)
    interval_level: float | None = Field(None, gt=0.0, lt=1.0)
    validation: ValidationKeys = ValidationKeys()

    @model_validator(mode="after")
    def _budget_fits_allocation(self) -> MethodKeys:
        if self.token_budget is not None and not self.shares_out:
            raise ValueError(
                "`token_budget` needs `allocation: budget` or `tokens`; `equal` uses only `k`"
            )
        return self

    @property
    def shares_out(self) -> bool:
        """Whether a budget of tokens is divided over the tasks."""
        return self.allocation != "equal"

    @property
    def pays_by_token(self) -> bool:
        """Whether a task selects items up to a number of tokens, not up to K items."""
        return self.allocation == "tokens"
