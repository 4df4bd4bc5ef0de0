"""What a partition would be made of now, and whether what there is was made of the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mteblite.suites.catalog import Catalog
from mteblite_assets.flow import declarations
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.keys import Grain, gathers, upstream_keys
from mteblite_assets.graph.work import SettingsContext

NOT_THERE = " is not there yet"
"""End of the reason of a partition whose input was never made."""

Ledger = Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Requirement:
    """What a partition would be made of now.

    Attributes:
        inputs: data version per dep (several upstream partitions hashed as Dagster does).
        blocked: why it cannot run yet, else "".
        unreadable: whether that is because its settings cannot be read (a model folder without
            weights): a run records the reason, so that it stands beside the other failures.
    """

    code_version: str
    settings_hash: str
    inputs: Mapping[str, str]
    blocked: str = ""
    unreadable: bool = False


def require(
    declaration: Declaration, context: SettingsContext, key: str, ledger: Ledger
) -> Requirement:
    """Return what a partition would be made of now, from the ledger's data versions."""
    inputs: dict[str, str] = {}
    blocked = ""
    for dep in declaration.deps:
        if not declaration.reads(dep, context):
            continue
        upstream = declarations()[dep]
        keys = upstream_keys(upstream.grain, declaration.grain, key, context.catalog)
        if upstream.grain is Grain.SOURCE and not keys:
            continue  # the one dep that a partition can do without
        entries = {k: ledger.get((dep, k)) for k in keys}
        good = {k: e["data_version"] for k, e in entries.items() if e and e["status"] == "ok"}
        if not good and declaration.grain is Grain.HOME:
            continue  # a home without candidates has reports, too
        if not good or (len(good) < len(keys) and not gathers(upstream.grain, declaration.grain)):
            blocked = blocked or _why_blocked(dep, entries)
            continue
        inputs[dep] = combined_version(good)
    settings = declaration.settings(context) if declaration.settings else None
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    return Requirement(declaration.code_version, digest.hexdigest()[:16], inputs, blocked)


def entries_read(
    declaration: Declaration, keys: Iterable[str], catalog: Catalog
) -> list[tuple[str, str]] | None:
    """Return (asset, key) of the ledger entries that `require` reads; None for all of them."""
    if declaration.grain is Grain.HOME:
        return None
    found: dict[tuple[str, str], None] = {}
    for key in keys:
        found[declaration.name, key] = None
        for dep in declaration.deps:
            above = declarations()[dep].grain
            found |= {(dep, k): None for k in upstream_keys(above, declaration.grain, key, catalog)}
    return list(found)


def require_safely(
    declaration: Declaration, context: SettingsContext, key: str, ledger: Ledger
) -> Requirement:
    """Return `require`; one model whose files cannot be read must not stop the others."""
    try:
        return require(declaration, context, key, ledger)
    except (ValueError, OSError) as error:
        return Requirement(declaration.code_version, "", {}, blocked=str(error), unreadable=True)


def combined_version(versions: Mapping[str, str]) -> str:
    """Return the data version of several upstream partitions, as Dagster computes it."""
    ordered = [versions[k] for k in sorted(versions)]
    if len(ordered) == 1:
        return ordered[0]
    return hashlib.sha256("".join(ordered).encode()).hexdigest()


def why_stale(entry: Mapping[str, Any] | None, need: Requirement) -> str:
    """Return why a partition must run, or "" when it is fresh."""
    if entry is None:
        return "missing"
    if entry["status"] != "ok":
        return f"failed before: {entry['reason']}"
    return what_changed(entry, need)


def what_changed(entry: Mapping[str, Any], need: Requirement) -> str:
    """Return what a run would have now and had not then, or what was lost since, or ""."""
    if damage := entry.get("damage"):
        return str(damage)
    if entry["code_version"] != need.code_version:
        return f"code version {entry['code_version']} -> {need.code_version}"
    if entry["settings_hash"] != need.settings_hash:
        return "settings changed"
    changed = [d for d in need.inputs if entry["inputs"].get(d) != need.inputs[d]]
    if changed or set(entry["inputs"]) != set(need.inputs):
        return f"input changed: {', '.join(changed) or 'deps'}"
    return ""


def _why_blocked(dep: str, entries: Mapping[str, Mapping[str, Any] | None]) -> str:
    for key, entry in entries.items():
        if entry is not None and entry["status"] != "ok":
            return f"{dep} {key} failed: {entry['reason']}"
    return f"{dep}{NOT_THERE}"
