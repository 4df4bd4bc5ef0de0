"""Suites read from their files, and the files of registered models."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from cachetools import LRUCache, cached
from cachetools.keys import hashkey

from mteblite.calibrations.levels import ALL_CALIBRATIONS
from mteblite.calibrations.registry import ESTIMATORS, SET_ESTIMATORS
from mteblite.files import write_json
from mteblite.item_parameters.fitting import RESPONSE_MODELS
from mteblite.sample.models.catalog import packaged_model
from mteblite.selections.registry import SELECTORS
from mteblite.suites.catalog import Catalog, Suite, make_suite
from mteblite.suites.resolution import LeftOut
from mteblite.suites.suite_file import (
    SuiteFile,
    SuiteFileError,
    check_methods,
    check_own_types,
    read_suite_file,
)
from mteblite.suites.suite_model import SuiteModel
from mteblite.task_types.registry import own_data_types
from mteblite.validation.folds import PROTOCOLS
from mteblite.validation.presets import packaged_presets
from mteblite_resources.frozen_tasks import packaged_suites, recall_resolution, stamp
from mteblite_resources.home import Home

SUITE_FILES_KEPT = 256
LONGEST = 200
"""Characters of a model's name that the name of its file can hold."""


def load_catalog(home: Home) -> Catalog:
    """Read every suite file, packaged ones first; a file with an error becomes a problem.

    A user's file may extend a packaged suite, but may not have its name.
    """
    suites: dict[str, Suite] = {}
    problems: dict[str, str] = {}
    packaged = {path.stem: path for path in sorted(packaged_suites().glob("*.yaml"))}
    for path in [*packaged.values(), *sorted(home.suites.glob("*.yaml"))]:
        try:
            file = _read_checked(path, packaged)
            if file.name in suites:
                whose = "the packaged " if file.name in packaged else ""
                raise SuiteFileError(
                    f"{path.name}: the name {file.name!r} is taken by "
                    f"{whose}{suites[file.name].origin}; choose another"
                )
            suites[file.name] = _suite(home, file, path)
        except ValueError as error:
            problems[path.name] = str(error)
    return Catalog(suites=suites, problems=problems)


def _read_checked(path: Path, packaged: Mapping[str, Path]) -> SuiteFile:
    """Parse a suite file, once per state: parsing is the slowest part of a command that reads."""
    try:
        state = stamp(path)
    except OSError as error:
        raise SuiteFileError(f"{path.name}: cannot be read: {error}") from error
    return _parse(path, state, packaged)


@cached(
    LRUCache(SUITE_FILES_KEPT),
    key=lambda path, state, _: hashkey(path, state),
    lock=threading.RLock(),
)
def _parse(path: Path, _state: tuple[int, int], packaged: Mapping[str, Path]) -> SuiteFile:
    file = read_suite_file(path, packaged)
    check_methods(path.name, file, _method_names())
    check_own_types(path.name, file, own_data_types())
    _check_models(path.name, file)
    return file


def register_model(home: Home, suite: str, model: SuiteModel) -> Path:
    """Add a model to a suite, or replace its entry, in a file of the home."""
    path = _model_file(home, suite, model.name)
    write_json(path, {"model": model.model_dump()})
    return path


def unregister_model(home: Home, suite: str, name: str, *, in_file: bool) -> None:
    """Remove a model from a suite; a model that the suite file lists is marked as removed."""
    path = _model_file(home, suite, name)
    if in_file:
        write_json(path, {"removed": name})
    else:
        path.unlink(missing_ok=True)


@cache
def _method_names() -> dict[str, list[str]]:
    """Return the names of the methods that exist, by key of the suite file."""
    return {
        "per_item.selection": list(SELECTORS),
        "per_item.estimator": list(ESTIMATORS),
        "set_metric.selection": list(SELECTORS),
        "set_metric.estimator": list(SET_ESTIMATORS),
        "calibration": list(ALL_CALIBRATIONS),
        "response_model": ["auto", *RESPONSE_MODELS],
        "preset": list(packaged_presets()),
        "validation.protocols": list(PROTOCOLS),
    }


def _check_models(file_name: str, file: SuiteFile) -> None:
    """Refuse names of packaged models that do not exist; files are checked when a model runs."""
    for number, model in enumerate(file.models):
        try:
            if model.is_packaged:
                packaged_model(model.packaged_name)
        except ValueError as error:
            raise SuiteFileError(f"{file_name}: `models.{number}`: {error}") from error


def _suite(home: Home, file: SuiteFile, path: Path) -> Suite:
    located, missing = _locate_data(file, path, home)
    models = {
        m.name: m if m.path is None else m.model_copy(update={"path": _locate(m.path, path, home)})
        for m in file.models
    }
    for record in sorted((home.models / file.name).glob("*.json")):
        name, model = read_record(record)
        if model is None:
            models.pop(name, None)
        else:
            models[name] = model
    suite = make_suite(located, path.name, models.values(), recall_resolution(home, located))
    return replace(suite, left_out=(*suite.left_out, *missing)) if missing else suite


def read_record(path: Path) -> tuple[str, SuiteModel | None]:
    """Return name and model of a file of `mteblite models add`; no model after `remove`."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if "removed" in entry:
            return str(entry["removed"]), None
        model = SuiteModel.model_validate(entry["model"])
    except (ValueError, KeyError, TypeError) as error:
        raise SuiteFileError(
            f"{path}, written by `mteblite models`, is damaged ({type(error).__name__}: {error}): "
            "delete it, then add or remove the model again"
        ) from error
    return model.name, model


def _locate_data(file: SuiteFile, path: Path, home: Home) -> tuple[SuiteFile, list[LeftOut]]:
    """Make paths of own data absolute; leave out tasks of packaged suites without their data."""
    if not any(t.path for t in file.tasks):
        return file, []
    tasks, missing = [], []
    for task in file.tasks:
        place = _locate(task.path, path, home) if task.path else None
        if place and path.parent == packaged_suites() and not Path(place).is_dir():
            reason = (
                f"your own data is not there yet: put corpus.jsonl, queries.jsonl and qrels.tsv "
                f"into {task.path} in the folder that holds the home, or in the home"
            )
            missing.append(LeftOut(task.task, str(task.type), reason))
        else:
            tasks.append(task.model_copy(update={"path": place}) if place else task)
    return file.model_copy(update={"tasks": tasks}), missing


def _locate(named: str, suite_file: Path, home: Home) -> str:
    """Return the first existing path below the suite file's folder, home's parent or this folder.

    For a packaged suite the home takes the place of the suite file's folder, which is installed.
    """
    given = Path(named).expanduser()
    places = [suite_file.parent, home.root.parent, Path.cwd()]
    if suite_file.parent == packaged_suites():
        places = [home.root.parent, home.root, Path.cwd()]
    place = next((p for p in places if (p / given).exists()), places[1])
    return str((place / given).absolute())


def _model_file(home: Home, suite: str, name: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "._+@=-" else "-" for c in name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    safe = safe if len(safe) <= LONGEST else safe[:100]
    return home.models / suite / f"{safe}.{digest}.json"
