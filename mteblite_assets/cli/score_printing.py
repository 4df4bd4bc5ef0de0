"""Lite scores of one model for the terminal and for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mteblite.lite_scores.degenerate import METHOD
from mteblite.lite_scores.pair_widths import FEW_SIBLINGS, SCORES, SIBLINGS, STRANGERS
from mteblite.suites.means import ENDS, means_in_order
from mteblite.suites.suite_file import HEADLINES
from mteblite_assets.cli import printing
from mteblite_assets.cli.tables import print_table

if TYPE_CHECKING:
    from mteblite.lite_scores.comparison import Comparison

Row = Mapping[str, Any]
PAIR_INTERVALS = {
    STRANGERS: "held-out pairs of different families",
    SIBLINGS: "held-out pairs of one family",
    FEW_SIBLINGS: "held-out pairs of different families, as too few are of one family",
    SCORES: "two independent scores, as there are no held-out pairs",
}
TASK_DROP = ("observed", "interval_method", "n_items", "task_type")


def print_scores(
    head: Row, tasks: Sequence[Row], types: Sequence[Row], total: Row, *, as_json: bool
) -> None:
    """Print predicted full scores with their intervals.

    Args:
        head: `model`, `suite`, `headline` (the mean that is printed first) and further keys of
            the JSON form.
        tasks: task, task_type, predicted, lower, upper, n_items, out_of_range, observed,
            interval_method.
        types: task_type, predicted, lower, upper, out_of_range, interval_method.
        total: mean and macro mean with their interval ends, out_of_range, interval_method, level
            of the intervals, n_texts, n_encoded, seconds, warnings (joined by "; ").
        as_json: print JSON.
    """
    if as_json:
        value = {k: printing.plain(v) for k, v in {**head, **total}.items()}
        value["tasks"] = [{k: printing.plain(v) for k, v in t.items()} for t in tasks]
        value["warnings"] = list(filter(None, str(total["warnings"]).split("; ")))
        value["types"] = [{k: printing.plain(v) for k, v in t.items()} for t in types]
        click.echo(json.dumps(value))
        return
    title = f"Predicted full scores of {head['model']} on suite {head['suite']} (points)"
    print_table(_points(_means(total, str(head.get("headline", HEADLINES[0])))), title)
    print_table(_points(types), "By task type", drop=TASK_DROP)
    print_table(_points(tasks), "By task", drop=TASK_DROP)
    _warn(tasks, total)
    click.echo(
        f"{total['n_texts']} texts, {total['n_encoded']} of them encoded now, "
        f"{total['seconds']:.1f} s; {total['level']:.0%} intervals: {total['interval_method']}"
    )


def print_comparison(
    found: Comparison,
    model: str,
    against: str,
    *,
    suite: str,
    warnings: Sequence[str],
    as_json: bool,
) -> None:
    """Print the differences of two models.

    Args:
        found: their comparison.
        model: the first one.
        against: the second one.
        suite: the suite of both.
        warnings: of each model in this order, joined by "; "; a collapsed model has one.
        as_json: print JSON.
    """
    rows = printing.records(found.differences)
    said = {m: w for m, w in zip((model, against), warnings, strict=True) if w}
    if as_json:
        value = {
            "suite": suite,
            "model": model,
            "against": against,
            "level": found.level,
            "joint": found.joint,
            "not_scored": list(found.not_scored),
            "warnings": {name: text.split("; ") for name, text in said.items()},
            "differences": [{k: printing.plain(v) for k, v in r.items()} for r in rows],
        }
        click.echo(json.dumps(value))
        return
    title = (
        f"{model} minus {against} on suite {suite} (points, on the items that both were scored on)"
    )
    print_table(_points(rows, ("difference", "lower", "upper")), title)
    for name, text in said.items():
        click.echo(f"warning: {name}: {text}")
    if found.not_scored:
        click.echo(
            f"warning: {', '.join(found.not_scored)} could not be scored for both models; "
            + ("predicted from the others" if found.joint else "means that need them are left out")
        )
    methods = set(found.differences["interval_method"])
    source = "; ".join(text for method, text in PAIR_INTERVALS.items() if method in methods)
    click.echo(f"{found.level:.0%} intervals from {source}; `undecided` where they hold 0")


def _means(total: Row, headline: str) -> list[Row]:
    return [
        {
            "target": name.replace("_", " "),
            "predicted": total[name],
            "lower": total[ENDS[name][0]],
            "upper": total[ENDS[name][1]],
        }
        for name in means_in_order(headline)
    ]


def _warn(tasks: Sequence[Row], total: Row) -> None:
    if total["warnings"]:
        click.echo(f"warning: {total['warnings']}")
    for task in (t["task"] for t in tasks if not t["observed"]):
        click.echo(f"warning: {task} could not be scored; it is predicted from the other tasks")
    if total["out_of_range"]:
        click.echo("warning: the macro mean is outside the range of the reference models")
    # Scores of chance are no predictions that could extrapolate.
    predicted = [t for t in tasks if t["interval_method"] != METHOD]
    flagged = [t["task"] for t in predicted if t["out_of_range"]]
    if flagged:
        click.echo(
            f"warning: outside the range of the reference models on {', '.join(flagged)}; "
            "predictions there extrapolate"
        )


def _points(
    rows: Sequence[Row], scores: Sequence[str] = ("predicted", "lower", "upper")
) -> list[dict[str, Any]]:
    """Return rows with scores and interval ends times 100."""
    return [{k: round(v * 100, 2) if k in scores else v for k, v in r.items()} for r in rows]
