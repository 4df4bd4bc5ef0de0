"""`mteblite quickstart`: build the sample suite end to end and print its results."""

from __future__ import annotations

import time

import click

from mteblite_assets.cli import printing
from mteblite_assets.cli.materializing import materialize
from mteblite_assets.cli.session import Session
from mteblite_assets.graph.keys import Scope
from mteblite_assets.graph.stages import STAGE_NAMES

SUITE = "sample"


def run_quickstart(session: Session, *, as_json: bool) -> int:
    """Build the sample suite, check its candidates against full runs, print the results."""
    started = time.perf_counter()
    # Candidates are scored before their full runs, like a new checkpoint: only texts of the
    # selected items are encoded.
    report = materialize(session, Scope(SUITE, stages=STAGE_NAMES[:-1]))
    check = materialize(session, Scope(SUITE, assets=("candidate_full_scores", "dbt_reports")))
    report.merge(check)
    code = 0 if report.good else 1
    printing.print_report(report, as_json, verb="ran")
    if as_json:
        return code
    click.echo("")
    printing.print_suite(session, SUITE)
    minutes, seconds = divmod(round(time.perf_counter() - started), 60)
    click.echo(f"\nDone in {minutes} min {seconds} s. All of it lies in {session.home.root}")
    click.echo(
        "Next:\n"
        "  mteblite dev                         the Dagster UI on http://127.0.0.1:3000\n"
        f"  mteblite score FOLDER --suite {SUITE}  score a sentence-transformers checkpoint\n"
        '  mteblite sql "FROM lite_leaderboard" plain SQL over the warehouse'
    )
    return code
