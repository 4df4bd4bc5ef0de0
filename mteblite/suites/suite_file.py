"""A suite file: one YAML document with the tasks, models and settings of a suite."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from mteblite.suites.method_keys import (
    MethodKeys,
    PerItemKeys,
    SetMetricKeys,
    Strict,
    ValidationKeys,
)
from mteblite.suites.suite_model import SuiteModel

SOURCES = ("official", "local", "run")
HEADLINES = ("macro_mean", "mean")

SHOWN = 20
"""Problems of a file that its error names."""
# The same safe loader, compiled where PyYAML was built with libyaml.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SuiteFileError(ValueError):
    """A suite file with an error; the message names file, key and allowed values."""


class PoolCaps(Strict):
    """Caps of the candidate pools; null means no cap."""

    max_items: int | None = Field(1000, ge=2)
    bm25_top: int | None = Field(30, ge=1)
    max_relevant: int | None = Field(100, ge=1)
    random_documents: int | None = Field(1000, ge=0)
    seed: int = Field(0, ge=0)


class SuiteTask(Strict):
    """One task of the suite: a task of mteb, or the user's own data."""

    task: str = Field(min_length=1, pattern=r"^[^|/\s][^|/]*$")
    hf_subsets: list[str] | None = Field(None, min_length=1)
    split: str | list[str] | None = None
    type: str | None = None
    path: str | None = None
    metrics: list[str] = Field([])
    k: int | None = Field(None, ge=2)
    max_items: int | None = Field(None, ge=2)

    @model_validator(mode="after")
    def _own_data_is_complete(self) -> SuiteTask:
        if (self.path is None) != (self.type is None):
            raise ValueError(
                "`path` and `type` go together: both for your own data, neither for mteb's tasks"
            )
        return self

    @property
    def splits(self) -> tuple[str, ...] | None:
        """The splits that the file names; None = those of the task."""
        if self.split is None:
            return None
        return (self.split,) if isinstance(self.split, str) else tuple(self.split)


class SuiteFile(MethodKeys):
    """A whole suite file; `MethodKeys` holds the keys that choose methods."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    description: str = ""
    extends: str | None = None
    only: list[str] | None = Field(None, min_length=1)
    benchmark: str | None = None
    metrics: list[str] = Field([])
    tasks: list[SuiteTask] = Field([])
    headline: Literal[HEADLINES] = "macro_mean"  # type: ignore[valid-type]
    k: int = Field(20, ge=2)
    pool: PoolCaps = PoolCaps()
    max_tokens: int | None = Field(None, ge=8)
    models: list[SuiteModel] = Field([])
    reference_scores: list[Literal[SOURCES]] = Field(["official", "local"])  # type: ignore[valid-type]

    @field_validator("tasks", mode="before")
    @classmethod
    def _accept_plain_names(cls, value: Any) -> Any:
        if isinstance(value, list):
            return [{"task": v} if isinstance(v, str) else v for v in value]
        return value

    @model_validator(mode="after")
    def _names_tasks_and_models_once(self) -> SuiteFile:
        if not self.benchmark and not self.tasks:
            raise ValueError("`tasks` or `benchmark` must name at least one task")
        for what, names in (
            ("task", [t.task for t in self.tasks]),
            ("model", [m.name for m in self.models]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{what} {twice[0]!r} is listed twice; list it once")
        return self


def read_suite_file(path: Path, parents: Mapping[str, Path] | None = None) -> SuiteFile:
    """Read and check a suite file, which may extend the suites in `parents`.

    A file with `extends` takes every key that it does not give from the other file. `only` then
    keeps some of the tasks, so that a part of a suite draws the pools of the whole suite.

    Raises:
        SuiteFileError: not YAML, an unknown key, or a value that is not allowed; the message names
            the file, the key and the allowed values.
    """
    raw = _read_mapping(path)
    if raw.get("extends") is not None:
        raw = _extended(path, raw, parents or {})
    try:
        return SuiteFile.model_validate(raw)
    except ValidationError as error:
        raise SuiteFileError(_explain(path.name, error)) from error


def _extended(path: Path, raw: dict[str, Any], parents: Mapping[str, Path]) -> dict[str, Any]:
    """Return the parent's keys, replaced by the child's, without the tasks not in `only`."""
    parent = raw["extends"]
    if not isinstance(parent, str):  # aliases make a list of any size of a few lines
        raise SuiteFileError(
            f"{path.name}: `extends`: expected the name of a suite, got {type(parent).__name__}"
        )
    if parent not in parents:
        raise SuiteFileError(
            f"{path.name}: `extends`: there is no suite {parent!r} to extend; "
            f"{_hint(parent, sorted(parents))}"
        )
    above = _read_mapping(parents[parent])
    if above.get("extends") is not None:
        raise SuiteFileError(
            f"{path.name}: `extends`: {parent!r} extends another suite itself; extend that"
        )
    merged = {**{k: v for k, v in above.items() if k not in ("name", "description")}, **raw}
    only, tasks = merged.get("only"), merged.get("tasks")
    if not isinstance(only, list) or not isinstance(tasks, list):
        return merged
    names: list[Any] = [t.get("task") if isinstance(t, dict) else t for t in tasks]
    if not all(isinstance(name, str) for name in [*names, *only]):
        return merged  # the check of the whole file reports the error
    unknown = [n for n in only if n not in names]
    if unknown and "benchmark" not in merged:
        raise SuiteFileError(
            f"{path.name}: `only`: {parent!r} has no task {unknown[0]!r}; "
            f"{_hint(unknown[0], names)}"
        )
    return {**merged, "tasks": [t for t, n in zip(tasks, names, strict=True) if n in only]}


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise SuiteFileError(f"{path.name}: cannot be read as YAML: {reason}") from error
    if not isinstance(raw, dict):
        found = "an empty file" if raw is None else type(raw).__name__
        raise SuiteFileError(
            f"{path.name}: expected a mapping with keys {', '.join(SuiteFile.model_fields)}; "
            f"got {found}"
        )
    return raw


def check_methods(file_name: str, file: SuiteFile, allowed: Mapping[str, Sequence[str]]) -> None:
    """Check the method names of a suite file; a value of null is not checked.

    `allowed` has the names of each key, e.g. of `per_item.selection`.

    Raises:
        SuiteFileError: an unknown name; the message names file, key and allowed names.
    """
    for key, names in allowed.items():
        value: Any = file
        for part in key.split("."):
            value = getattr(value, part)
        for name in value if isinstance(value, list) else [value]:
            if name is not None and name not in names:
                raise SuiteFileError(
                    f"{file_name}: `{key}`: there is no {name!r}; {_hint(name, names)}"
                )


def check_own_types(file_name: str, file: SuiteFile, allowed: Sequence[str]) -> None:
    """Check that the user's own data have one of the allowed types.

    Raises:
        SuiteFileError: another type; the message names file, key and allowed types.
    """
    for number, task in enumerate(file.tasks):
        if task.type is not None and task.type not in allowed:
            raise SuiteFileError(
                f"{file_name}: `tasks.{number}.type`: own data cannot be {task.type!r}; "
                f"{_hint(task.type, allowed)}"
            )


def _explain(file: str, error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        place = ".".join(str(p) for p in problem["loc"]) or "file"
        if problem["type"] == "extra_forbidden":
            allowed = _fields_at(problem["loc"][:-1])
            lines.append(f"{file}: unknown key `{place}`; {_hint(problem['loc'][-1], allowed)}")
        elif problem["type"] == "missing":
            lines.append(f"{file}: key `{place}` is missing")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            given = problem.get("input")
            shown = "" if isinstance(given, dict | list) or given is None else f" (got {given!r})"
            lines.append(f"{file}: `{place}`: {message}{shown}")
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "; ".join([*lines[:SHOWN], *more])


def _hint(given: object, allowed: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(given), allowed, n=1)
    guess = f"did you mean `{near[0]}`? " if near else ""
    return f"{guess}Allowed: {', '.join(allowed)}"


def _fields_at(location: tuple[Any, ...]) -> list[str]:
    places: dict[str, type[BaseModel]] = {
        "pool": PoolCaps,
        "per_item": PerItemKeys,
        "set_metric": SetMetricKeys,
        "validation": ValidationKeys,
        "tasks": SuiteTask,
        "models": SuiteModel,
    }
    model = places.get(str(location[0])) if location else SuiteFile
    return list((model or SuiteFile).model_fields)
