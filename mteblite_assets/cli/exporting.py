"""Export a suite's lite selection: run the `releases` asset, then copy its folder."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click

from mteblite_assets.cli.completing import complete_suites
from mteblite_assets.cli.session import NO_LITE_SUITE, Session, UsageError
from mteblite_assets.graph.keys import Scope

ASSET, RELEASES = "releases", "lite_scores.releases"


@click.command()
@click.option("--suite", required=True, help="Name of the suite.", shell_complete=complete_suites)
@click.option("--out", required=True, help="Folder to write; absent or empty.")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of text.")
def export(suite: str, out: str, json_: bool) -> None:
    """Write the lite suite as a data set folder that scores models anywhere."""
    export_suite(Session(), suite, Path(out), as_json=json_)


def export_suite(session: Session, suite: str, out: Path, *, as_json: bool) -> None:
    """Export the lite suite as it is stored, and print version and folder of the release.

    The folder `out` is absent or empty, or holds this release already.

    Raises:
        UsageError: the suite has no lite selection yet.
        ReleaseError: the folder holds something else.
        RunError: the release could not be made.
    """
    from mteblite.releases.release_files import copy_release, read_manifest

    _require_lite_suite(session, suite)
    session.resolve(suite)
    _warn_if_stale(session, suite)
    logging.getLogger("mteblite.progress").info("== exporting suite %s", suite)
    # Forced, because it is fast and restores a deleted folder.
    session.execute_partition(ASSET, suite, force=True)
    source = session.bench.ports.releases.folder(suite, _made_version(session, suite))
    manifest = read_manifest(source)
    written = copy_release(source, out)
    if as_json:
        named = ("suite", "version", "content_hash", "created_from", "variant", "n_items")
        facts = {name: manifest[name] for name in named}
        click.echo(json.dumps({**facts, "out": str(out), "written": written}))
        return
    click.echo(
        f"release {manifest['version']}: {manifest['n_items']} items of "
        f"{len(manifest['tasks'])} tasks "
        + (f"in {out}" if written else f"is in {out} already; nothing was changed")
    )
    if written:
        click.echo(f"score a model with it: mteblite score MODEL --release {out}")


def _require_lite_suite(session: Session, suite: str) -> None:
    session.suite(suite)
    entry = session.ledger().get(("lite_suite", suite))
    if entry is None or entry["status"] != "ok":
        reason = f" ({entry['reason']})" if entry and entry["reason"] else ""
        raise UsageError(NO_LITE_SUITE.format(suite=suite, reason=reason))


def _warn_if_stale(session: Session, suite: str) -> None:
    """Warn before a stale lite suite is exported, because a release is never changed."""
    from mteblite_assets.cli.materializing import dry_run

    plan = dry_run(session, Scope(suite)).plans["lite_suite"]
    if plan.run or plan.blocked:
        reasons = ", ".join(plan.reasons.values())
        click.echo(
            f"warning: the lite suite is not up to date ({reasons}); it is exported as it is "
            f"stored; `mteblite materialize --suite {suite}` brings it up to date",
            err=True,
        )


def _made_version(session: Session, suite: str) -> str:
    """Return the version of the release that the last run made."""
    import pandas as pd

    from mteblite_assets.cli.materializing import RunError
    from mteblite_assets.graph.content import text_version
    from mteblite_resources.warehouse import read_partitions

    entry = session.ledger().get((ASSET, suite))
    if entry is None or entry["status"] != "ok":
        reason = entry["reason"] if entry and entry["reason"] else "the run ended early"
        raise RunError(f"suite {suite!r} could not be exported: {reason}")
    with session.bench.warehouse.session() as connection:
        recorded = read_partitions(connection, RELEASES, pd.DataFrame([{"suite": suite}]))
    made = recorded[recorded["content_hash"].map(text_version) == entry["data_version"]]
    return str(made["version"].iloc[-1])
