"""mteb's descriptive statistics of its tasks, read without an import of mteb."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

from mteblite.files import read_json


def task_statistics(task: str, task_type: str) -> dict[str, Any] | None:
    """Return mteb's statistics of a task by split; None where mteb has none."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / task_type / f"{task}.json"
    if not path.is_file():
        path = next(iter(sorted(folder.glob(f"*/{task}.json"))), path)
    return read_json(path) or None


@lru_cache(maxsize=1)
def _folder() -> Path | None:
    spec = importlib.util.find_spec("mteb")  # does not run the package's code
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) / "descriptive_stats" if places else None
