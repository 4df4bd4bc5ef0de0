"""Shell completion of suites, tasks, models and stages, from the names in files.

A completion answers while somebody waits for it, so it reads suite files, frozen tasks and
registered models as text, and imports neither Dagster nor mteb nor the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from mteblite.files import read_json
from mteblite_assets.graph.stages import STAGE_NAMES

PACKAGED = Path(__file__).resolve().parents[2] / "mteblite" / "suites" / "packaged"


def complete_suites(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of suites that begin so."""
    return _beginning(_suite_files(), incomplete)


def complete_tasks(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the tasks of the suite given before, or of all suites, that begin so."""
    names: set[str] = set()
    for suite in _chosen(context):
        names |= _tasks_of(suite)
    return _beginning(names, incomplete)


def complete_models(context: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    """Return the models of the suite given before that begin so; of a path, its folders."""
    from click.shell_completion import CompletionItem

    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="dir")]
    names: set[str] = set()
    for suite in _chosen(context):
        names |= _models_of(suite)
    return _beginning(names, incomplete)


def complete_stages(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the stages that begin so, in flow order."""
    return [name for name in STAGE_NAMES if name.startswith(incomplete)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _home() -> Path:
    from mteblite_resources.home import Home

    return Home.from_environment().root


def _suite_files() -> dict[str, Path]:
    files = [*PACKAGED.glob("*.yaml"), *(_home() / "suites").glob("*.yaml")]
    found: dict[str, Path] = {}
    for path in sorted(files, key=lambda path: path.parent != PACKAGED):
        name = re.search(r"^name:\s*['\"]?([\w.-]+)", _text(path), re.MULTILINE)
        found.setdefault(name[1] if name else path.stem, path)
    return found


def _chosen(context: click.Context) -> list[str]:
    """Return the suite of the command line so far, else all suites."""
    chosen = context.params.get("suite")
    return [chosen] if chosen else list(_suite_files())


def _document(suite: str) -> dict[str, Any]:
    import yaml

    path = _suite_files().get(suite)
    try:
        # The loader in C, because the files of the packaged suites are long.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        found = yaml.load(_text(path), Loader=loader) if path else {}
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}
    if not isinstance(found, dict):
        return {}
    parent = found.get("extends")
    return {**(_document(parent) if isinstance(parent, str) and parent != suite else {}), **found}


def _tasks_of(suite: str) -> set[str]:
    document = _document(suite)
    listed = {t if isinstance(t, str) else str(t.get("task")) for t in document.get("tasks") or []}
    frozen = document.get("extends") or suite
    for path in (PACKAGED / f"{frozen}.tasks.json", _home() / "resolved" / f"{suite}.json"):
        listed |= {str(task.get("task")) for task in read_json(path).get("tasks", [])}
    only = document.get("only")
    return listed & set(only) if only else listed


def _models_of(suite: str) -> set[str]:
    names = {str(m.get("name")) for m in _document(suite).get("models") or []}
    for path in sorted((_home() / "models" / suite).glob("*.json")):
        record = read_json(path)
        names.discard(str(record.get("removed")))
        if isinstance(record.get("model"), dict):
            names.add(str(record["model"].get("name")))
    return names


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
