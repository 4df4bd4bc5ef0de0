"""Register models with a suite, and remove them."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

from mteblite.suites.catalog import Suite
from mteblite.suites.suite_model import SuiteModel
from mteblite_assets.cli.session import Session, UsageError
from mteblite_assets.graph.keys import model_key
from mteblite_resources.catalog_files import register_model, unregister_model


def add_model(
    session: Session,
    suite: str,
    name: str,
    *,
    family: str | None = None,
    role: str | None = None,
    path: str | None = None,
    prompts: tuple[str, ...] = (),
    **options: Any,
) -> SuiteModel:
    """Register a model and make its partitions; a listed model keeps options that are not given.

    Raises:
        UsageError: a family or a prompt is missing or of another form; nothing is registered.
        ValueError: a name or an option is not allowed, the folder has no weights, or the packaged
            model does not exist.
    """
    known = session.suite(suite)
    listed = next((m for m in known.models if m.name == name), None)
    before = listed.model_dump(exclude_defaults=True) if listed else {}
    family = family or before.get("family")
    role = role or before.get("role") or ("reference" if listed else "candidate")
    if role == "reference" and family is None:
        raise UsageError(
            f"reference model {name!r} needs --family, the models that share weights or training: "
            "validation holds out whole families"
        )
    given = {
        "path": str(Path(path).expanduser().absolute()) if path else None,
        "prompts": _parse_prompts(prompts),
        **options,
    }
    asked = {k: v for k, v in given.items() if v is not None and v is not False}
    kept = {k: v for k, v in before.items() if k not in ("name", "family")}
    model = SuiteModel.named(name, family, **{**kept, **asked, "role": role})
    session.bench.ports.models.with_weights(model)
    # A damaged folder is an error here, before any run uses it.
    if model.path or model.name.startswith("package:"):
        session.bench.ports.models.identify(model)
    register_model(session.home, known.name, model)
    session.register_partitions()
    return model


def remove_models(session: Session, suite: str, pattern: str) -> list[str]:
    """Remove the models that a name or a shell pattern matches; return their names.

    Raises:
        ValueError: the suite has no such model.
    """
    from mteblite_assets.graph.driver import forget_partitions
    from mteblite_assets.lite_scores.assets import lite_scores
    from mteblite_assets.reference_scores.assets import candidate_full_scores

    known = session.suite(suite)
    names = sorted(m.name for m in known.models)
    found = [n for n in names if n == pattern] or fnmatch.filter(names, pattern)
    if not found:
        known.model(pattern)  # names what there is
    in_file = {m.name for m in known.file.models}
    for name in found:
        unregister_model(session.home, suite, name, in_file=name in in_file)
    session.register_partitions()
    for asset in (lite_scores, candidate_full_scores):
        forget_partitions(asset, [model_key(name, suite) for name in found], session.bench)
    session.bench.warehouse.publish()
    return found


def problems_of(session: Session, suite: Suite) -> dict[str, str]:
    """Return by model why it is not usable: its folder is gone, or a run refused it."""
    problems = {}
    if session.home.writer.exists() or session.home.snapshot.exists():
        for (asset, key), entry in session.ledger().items():
            name, _, other = key.rpartition("|")
            if asset == "lite_scores" and other == suite.name and entry["status"] != "ok":
                problems[name] = str(entry["reason"])
    gone = [m.name for m in suite.models if m.path and not Path(m.path).is_dir()]
    return {**problems, **dict.fromkeys(gone, "folder is gone")}


def _parse_prompts(given: tuple[str, ...]) -> dict[str, str] | None:
    prompts = {}
    for text in given:
        key, found, prompt = text.partition("=")
        if not found or not key:
            raise UsageError(f"--prompt {text!r}: expected KEY=TEXT, e.g. --prompt 'query=query: '")
        prompts[key] = prompt
    return prompts or None
