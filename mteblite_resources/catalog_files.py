"""Reads suites from files, remembers what they resolved to, and keeps the registered models."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mteblite_assets.suites as suites_stage
from mteblite_assets.calibrations.registry import ESTIMATORS
from mteblite_assets.pools.task_data import TaskDescription
from mteblite_assets.selections.registry import SELECTORS
from mteblite_assets.suites.catalog import (
    Catalog,
    Suite,
    description_from_json,
    description_to_json,
    make_suite,
    request_digest,
)
from mteblite_assets.suites.suite_file import (
    SuiteFile,
    SuiteFileError,
    SuiteModel,
    check_methods,
    read_suite_file,
)
from mteblite_resources.home import Home
from mteblite_resources.model_spec import ModelSpec
from mteblite_resources.packaged_models.catalog import packaged_model


def packaged_suites() -> Path:
    """Return the folder of the suites that ship with the project."""
    return Path(next(iter(suites_stage.__path__))) / "packaged"


def load_catalog(home: Home) -> Catalog:
    """Read every suite file, packaged ones first; a broken file is a problem, not an end.

    A user's file may not reuse the name of a packaged suite.
    """
    suites: dict[str, Suite] = {}
    problems: dict[str, str] = {}
    for path in [*sorted(packaged_suites().glob("*.yaml")), *sorted(home.suites.glob("*.yaml"))]:
        try:
            file = read_suite_file(path)
            check_methods(path.name, file, list(SELECTORS), list(ESTIMATORS))
            _check_models(path.name, file)
            if file.name in suites:
                raise SuiteFileError(
                    f"{path.name}: the name {file.name!r} is taken by "
                    f"{suites[file.name].origin}; choose another"
                )
            suites[file.name] = _suite(home, file, path)
        except ValueError as error:
            problems[path.name] = str(error)
    return Catalog(suites=suites, problems=problems)


def remember_resolution(home: Home, file: SuiteFile, tasks: Mapping[str, TaskDescription]) -> None:
    """Freeze what a suite's tasks resolved to, with mteb's version."""
    record = {
        "request": request_digest(file),
        "mteb_version": version("mteb"),
        "tasks": [description_to_json(d) for d in tasks.values()],
        "data": _data_state(file),
    }
    write_json(home.resolved / f"{file.name}.json", record)


def recall_resolution(home: Home, file: SuiteFile) -> dict[str, TaskDescription] | None:
    """Return the frozen tasks of a suite, or None if request, mteb or own data changed since."""
    path = home.resolved / f"{file.name}.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text())
    current = (request_digest(file), version("mteb"))
    if (record["request"], record["mteb_version"]) != current:
        return None
    if record.get("data") != _data_state(file):
        return None
    return {d["task"]: description_from_json(d) for d in record["tasks"]}


def register_model(home: Home, suite: str, model: SuiteModel) -> Path:
    """Add a model to a suite, or replace its entry; survives restarts."""
    path = _model_file(home, suite, model.name)
    write_json(path, {"model": model.model_dump()})
    return path


def unregister_model(home: Home, suite: str, name: str, *, in_file: bool) -> None:
    """Take a model out of a suite; one that the suite file lists is marked as removed."""
    path = _model_file(home, suite, name)
    if in_file:
        write_json(path, {"removed": name})
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    with os.fdopen(handle, "w") as stream:
        json.dump(value, stream, indent=1, sort_keys=True)
    Path(scratch).replace(path)


def _check_models(file_name: str, file: SuiteFile) -> None:
    """Refuse names that no model can have; whether its files are there is seen when it runs."""
    for number, model in enumerate(file.models):
        try:
            spec = ModelSpec(**model.model_dump())
            if spec.is_packaged:
                packaged_model(spec.packaged_name)
        except ValueError as error:
            raise SuiteFileError(f"{file_name}: `models.{number}`: {error}") from error


def _data_state(file: SuiteFile) -> dict[str, str]:
    """Say per task of the user's own data when its files changed; content is hashed only then."""
    return {t.task: _folder_state(Path(t.path)) for t in file.tasks if t.path}


def _folder_state(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        stat = path.stat()
        digest.update(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _suite(home: Home, file: SuiteFile, path: Path) -> Suite:
    located = _locate_data(file, path, home)
    models = {m.name: _locate_model(m, path, home) for m in file.models}
    for record in sorted((home.models / file.name).glob("*.json")):
        entry = json.loads(record.read_text())
        if "removed" in entry:
            models.pop(entry["removed"], None)
        else:
            model = SuiteModel.model_validate(entry["model"])
            models[model.name] = model
    return make_suite(located, path.name, models.values(), recall_resolution(home, located))


def _locate_data(file: SuiteFile, path: Path, home: Home) -> SuiteFile:
    tasks = [
        t.model_copy(update={"path": _locate(t.path, path, home)}) if t.path else t
        for t in file.tasks
    ]
    return file.model_copy(update={"tasks": tasks})


def _locate_model(model: SuiteModel, path: Path, home: Home) -> SuiteModel:
    if model.path is None:
        return model
    return model.model_copy(update={"path": _locate(model.path, path, home)})


def _locate(named: str, suite_file: Path, home: Home) -> str:
    """Relative paths count from the suite file's folder, then the home's parent, then here."""
    given = Path(named).expanduser()
    places = [suite_file.parent, home.root.parent, Path.cwd()]
    for place in places:
        if (place / given).exists():
            return str((place / given).absolute())
    return str((places[1] / given).absolute())


def _model_file(home: Home, suite: str, name: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "._+@=-" else "-" for c in name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return home.models / suite / f"{safe}.{digest}.json"
