"""Tables for the terminal, JSON for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mteblite_assets.cli.tables import print_table

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
SELECT variant, chosen, mae, mae_lower, mae_upper, mae_draw_sd AS draw_sd,
    mae_ratio_to_random AS vs_random, kendall_tau AS tau, pearson, n_models AS models
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

SHOWN = 20
"""Partitions whose reason a plan prints, per asset."""
DAGGER = "; † = full scores that the model's authors (partly) measured themselves"


def emit(rows: Sequence[Mapping[str, Any]], as_json: bool, drop: Sequence[str] = ()) -> None:
    """Print rows as a JSON list of objects, or as a table (see `print_table` on `drop`)."""
    if as_json:
        click.echo(json.dumps([{k: plain(v) for k, v in r.items()} for r in rows], default=str))
        return
    print_table(rows, drop=drop)


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
            for key in asset["run"][:SHOWN]:
                click.echo(f"  {name} {key}: {asset['reasons'][key]}")
            if len(asset["run"]) > SHOWN:
                click.echo(f"  {name}: and {len(asset['run']) - SHOWN} more")
    for name, asset in value["assets"].items():
        for key, reason in asset["failed"].items():
            click.echo(f"failed: {name} {key}: {reason}", err=True)
    _print_blocked(report)
    for name, reason in report.unusable.items():
        click.echo(f"note: candidate {name} is not usable: {reason}", err=True)
    for check in value["failed_checks"]:
        click.echo(f"failed check: {check}", err=True)


def print_status(stages: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print the counts of each stage, then for each stage and state the most frequent reason."""
    if as_json:
        emit(stages, as_json)
        return
    print_table([{k: v for k, v in stage.items() if k != "reasons"} for stage in stages])
    for stage in stages:
        for state in ("stale", "failed", "missing"):
            found = [r for r in stage["reasons"] if r["state"] == state]
            # That everything is missing needs no reason.
            if not found or (state == "missing" and {r["reason"] for r in found} == {"missing"}):
                continue
            most = max(found, key=lambda reason: reason["count"])
            others = f"; {len(found) - 1} other reasons (--json)" if len(found) > 1 else ""
            click.echo(
                f"{stage['stage']}: {most['count']} {state}: {most['reason']} "
                f"({most['first']}){others}"
            )


def _print_blocked(report: Report) -> None:
    """Print once each reason that holds partitions back, and what makes missing inputs."""
    from mteblite_assets.graph.requirements import NOT_THERE

    missing: set[str] = set()
    for name, plan in report.plans.items():
        groups: dict[str, list[str]] = {}
        for key in plan.blocked:
            if key not in report.failed.get(name, {}):
                groups.setdefault(plan.reasons[key], []).append(key)
        for reason, keys in groups.items():
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            click.echo(f"blocked: {name} {keys[0]}{more}: {reason}", err=True)
            if reason.endswith(NOT_THERE):
                missing.add(reason.removesuffix(NOT_THERE))
    if missing - set(report.plans):
        click.echo(
            f"note: `mteblite materialize --suite {report.suite}` without --stage makes what is "
            "missing first",
            err=True,
        )


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
        _percent(leaderboard, ("macro", "lower", "upper", "true_macro", "mean", "true_mean")),
        f"Lite leaderboard of suite {suite}: predicted beside true full scores (points)",
        drop=("true_mean", "mean", "family", "role"),
    )
    click.echo(
        "prediction: `lite` = scored on the selected items only; `held_out` = predicted by the "
        "fold that left its family out"
        + (DAGGER if leaderboard["model"].str.endswith("†").any() else "")
        + "\n"
    )
    errors = ("mae", "mae_lower", "mae_upper", "draw_sd")
    print_table(
        _percent(warehouse.query(VALIDATION, [suite]), errors),
        "Validation: predicting the macro mean of held-out families (MAE in points)",
        drop=("mae_lower", "mae_upper", "models", "pearson"),
    )
    print_table(
        _percent(warehouse.query(NESTED_ERRORS, [suite]), ("mae", "naive_best_mae", "optimism")),
        "The variant chosen without the held-out family, and the best families",
        drop=("naive_best_mae",),
    )


def _percent(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return records(frame.assign(**{c: (frame[c].astype(float) * 100).round(2) for c in columns}))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dicts."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def shortened(names: Sequence[str], most: int = 6) -> list[str]:
    """Return the first names and the number of the others."""
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and not math.isfinite(value) else value
