"""Tables for the terminal, JSON for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

    from mteblite_assets.cli.materializing import Report
    from mteblite_assets.cli.session import Session

LEADERBOARD = """
SELECT rank, model || CASE WHEN provenance IS NULL THEN '' ELSE ' †' END AS model, family, role,
    prediction, predicted_macro_mean AS macro, macro_lower AS lower, macro_upper AS upper,
    true_macro_mean AS true_macro, predicted_mean AS mean, true_mean
FROM lite_leaderboard WHERE suite = ? ORDER BY rank, lite_leaderboard.model
"""
VALIDATION = """
SELECT variant, chosen, mae, mae_lower, mae_upper, mae_ratio_to_random AS vs_random,
    kendall_tau AS tau, pearson, coverage_90, n_models AS models
FROM validation_summary WHERE suite = ? AND protocol = 'family_lomo' AND target = 'macro'
ORDER BY mae NULLS LAST, variant
"""
NESTED_ERRORS = """
SELECT protocol, variant, mae, naive_best_mae, optimism, vs_random, tau,
    out_of_range_flagged AS flagged
FROM (
    SELECT *, mae_ratio_to_random AS vs_random, kendall_tau AS tau FROM validation_summary
    WHERE suite = ? AND target = 'macro' AND (protocol = 'nested_family_lomo'
        OR (protocol = 'frontier' AND (chosen OR variant IN ('random/mean', 'pool/mean'))))
) ORDER BY protocol DESC, mae NULLS LAST, variant
"""

DAGGER = "; † = full scores that the model's authors (partly) measured themselves"


def emit(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print rows as a JSON list of objects or as a table."""
    if as_json:
        click.echo(json.dumps([{k: plain(v) for k, v in r.items()} for r in rows], default=str))
        return
    print_table(rows)


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Print rows as a table, numbers right-aligned."""
    import shutil
    import sys

    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    table = Table(box=None, header_style="bold")
    for name in rows[0]:
        number = any(isinstance(r[name], int | float) for r in rows)
        table.add_column(str(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_shown(v) for v in row.values()))
    # A pipe or a log has no width, so nothing is wrapped there.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 400
    console = Console(width=width, highlight=False)
    if title:  # rich would wrap a table's title at the width of the table
        console.print(title, style="italic", markup=False)
    console.print(table)


def print_report(
    report: Report,
    as_json: bool,
    *,
    verb: str,
    with_reasons: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Print by stage what ran or would run, with failures and their reasons.

    Args:
        report: result of a run or of a plan.
        as_json: print JSON.
        verb: heading of the column of partitions that ran or would run.
        with_reasons: print the reason of each partition.
        facts: further keys of the JSON form.
    """
    value = {**report.as_json(), **(facts or {})}
    if as_json:
        click.echo(json.dumps(value))
    else:
        rows = [
            {"stage": name, verb: len(s["run"]), "fresh": s["fresh"], "failed": len(s["failed"]),
             "blocked": len(s["blocked"])}
            for name, s in value["stages"].items()
        ]  # fmt: skip
        print_table(rows)
        total = sum(len(s["run"]) for s in value["stages"].values())
        click.echo(f"{total} partitions {verb}")
    if with_reasons and not as_json:
        for name, asset in value["assets"].items():
            for key in asset["run"][:20]:
                click.echo(f"  {name} {key}: {asset['reasons'][key]}")
            if len(asset["run"]) > 20:
                click.echo(f"  {name}: and {len(asset['run']) - 20} more")
    for name, asset in value["assets"].items():
        for key, reason in asset["failed"].items():
            click.echo(f"failed: {name} {key}: {reason}", err=True)
        for key in asset["blocked"]:
            if key not in asset["failed"]:
                click.echo(f"blocked: {name} {key}: {asset['reasons'][key]}", err=True)
    for check in value["failed_checks"]:
        click.echo(f"failed check: {check}", err=True)


def print_suite(session: Session, suite: str) -> None:
    """Print a suite's leaderboard and its validation summary."""
    import duckdb

    warehouse = session.bench.warehouse
    try:
        leaderboard = warehouse.query(LEADERBOARD, [suite])
    except duckdb.CatalogException:
        click.echo("the reports do not exist yet: run `mteblite report`")
        return
    if leaderboard.empty:
        click.echo(
            f"suite {suite!r} has no predictions yet: run `mteblite materialize --suite {suite}`"
        )
        return
    print_table(
        _percent(leaderboard, ("macro", "lower", "upper", "true_macro",
                                                        "mean", "true_mean")),
        f"Lite leaderboard of suite {suite}: predicted beside true full scores (points)",
    )  # fmt: skip
    click.echo(
        "prediction: `lite` = scored on the selected items only; `held_out` = predicted by the "
        "fold that left its family out"
        + (DAGGER if leaderboard["model"].str.endswith("†").any() else "")
        + "\n"
    )
    print_table(
        _percent(warehouse.query(VALIDATION, [suite]), ("mae", "mae_lower", "mae_upper")),
        "Validation: predicting the macro mean of held-out families (MAE in points)",
    )
    print_table(
        _percent(warehouse.query(NESTED_ERRORS, [suite]), ("mae", "naive_best_mae", "optimism")),
        "The variant chosen without the held-out family, and the best families",
    )


def _percent(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return records(frame.assign(**{c: (frame[c].astype(float) * 100).round(2) for c in columns}))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dicts."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def shortened(names: Sequence[str], most: int = 6) -> list[str]:
    """Return the first names and the number of the others."""
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 2 else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and not math.isfinite(value) else value
