"""Parts of SELECTION.md: families, and the validation tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mteblite.releases.markdown import fractions, points, table

BASELINES = ("pool/mean", "random/mean")
"""Variants shown beside the chosen one: all items of the pool, and random items."""


def family_lines(kept_models: pd.DataFrame) -> list[str]:
    """Return one line per family: `- family: kept a, b (of n)`, best first.

    Args:
        kept_models: model, family, kept, score, n_in_family.
    """
    lines = []
    for family, members in kept_models.sort_values("family").groupby("family", sort=True):
        kept = members[members["kept"]]
        if "score" in kept.columns:
            kept = kept.sort_values(["score", "model"], ascending=[False, True])
        names = ", ".join(map(str, kept["model"])) or "none"
        number = members["n_in_family"].max() if "n_in_family" in members else len(members)
        lines.append(f"- {family}: kept {names} (of {int(number)})")
    return lines


def validation_section(
    variant: str, metrics: pd.DataFrame, bootstrap: pd.DataFrame, intervals: pd.DataFrame
) -> str:
    """Return section 5: errors and rank correlations of held-out models, and interval widths.

    Args:
        variant: the chosen variant, which is shown beside the baselines.
        metrics: rows of `validation.validation_metrics`.
        bootstrap: protocol, variant, target, metric, value, lower, upper (may be empty).
        intervals: half-widths by target.
    """
    chosen = metrics[metrics["target"].isin(["macro", "mean"])]
    shown = [variant, *BASELINES]
    rest = ~chosen["variant"].isin(shown) & chosen["protocol"].str.startswith("nested")
    chosen = chosen[chosen["variant"].isin(shown) | rest]
    wide = chosen.pivot_table(
        index=["protocol", "target", "variant"], columns="metric", values="value", dropna=False
    )
    ends: dict[Any, tuple[float, float]] = {
        (r.protocol, r.target, r.variant, r.metric): (float(str(r.lower)), float(str(r.upper)))
        for r in bootstrap.itertuples()
    }
    models = chosen.groupby(["protocol", "target", "variant"])["n_models"].max()
    rows = [
        _metric_row(key, wide.loc[key], int(models[key]), ends)
        for key in wide.index
        if wide.loc[key].notna().any()
    ]
    level = intervals["level"].max() if len(intervals) else float("nan")
    parts = [
        "## 5. Validation",
        "Every family (`family_lomo`), or every single model (`model_lomo`), is held out in turn: "
        "items are fitted, selected and calibrated without it, then its scores are predicted. "
        "`macro` is the mean over type means, `mean` the mean over tasks; models with a full "
        "score of every task count. In brackets: 95 % intervals from redrawn families.",
        table(rows) or "No model could be held out: nothing is known of the errors.",
        f"Intervals around lite scores of models with every task (level {100 * level:.0f} %), "
        "from the residuals of held-out families:"
        if len(intervals)
        else "",
        table(_widths(intervals)),
    ]
    return "\n\n".join(part for part in parts if part)


def _widths(intervals: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "target": str(row["target"]),
            "half-width (points)": points(float(row["half_width"])),
            "method": str(row["interval_method"]),
            "families": int(row["n_families"]),
        }
        for row in intervals.sort_values("target").to_dict("records")
    ]


def _metric_row(
    key: Any, values: pd.Series, n_models: int, ends: Mapping[Any, tuple[float, float]]
) -> dict[str, Any]:
    protocol, target, variant = key

    def number(name: str, shown: Any) -> str:
        text = shown(float(values.get(name, float("nan"))))
        low, high = ends.get((protocol, target, variant, name), (float("nan"), float("nan")))
        return text if low != low or high != high else f"{text} [{shown(low)}, {shown(high)}]"

    return {
        "protocol": protocol,
        "target": target,
        "variant": variant,
        "MAE (points)": number("mae", points),
        "bias (points)": number("bias", points),
        "Kendall tau-b": number("kendall_tau", fractions),
        "tau, resolvable pairs": number("kendall_tau_resolvable", fractions),
        "Pearson": number("pearson", fractions),
        "coverage of 90 % intervals": number("coverage_90", fractions),
        "models": n_models,
    }
