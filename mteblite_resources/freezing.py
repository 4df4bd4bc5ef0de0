"""Write the frozen tasks of the packaged suites: `python -m mteblite_resources.freezing`.

Run it with the version of mteb that the project pins, then review the diff. Tasks of own data are
not frozen, because the data are the user's. The sample suite is not frozen, because its tasks
depend on the packages that are installed beside a home.
"""

from __future__ import annotations

import json
import sys

from mteblite.suites.resolution import Resolution, resolution_to_json
from mteblite.suites.suite_file import SuiteFile, read_suite_file
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.tasks.resolving import resolve_tasks
from mteblite_resources.frozen_tasks import SUFFIX, packaged_suites

NOT_FROZEN = ("sample",)


def freeze(file: SuiteFile) -> Resolution:
    """Resolve the tasks of a packaged suite against the installed mteb."""
    without_own = file.model_copy(update={"tasks": [t for t in file.tasks if t.path is None]})
    return resolve_tasks(without_own, f"{file.name}.yaml", MtebTasks(), Resolution())


def main() -> None:
    """Freeze every packaged suite."""
    for path in sorted(packaged_suites().glob("*.yaml")):
        file = read_suite_file(path)
        if file.name in NOT_FROZEN:
            continue
        found = freeze(file)
        text = json.dumps(resolution_to_json(found), indent=1, sort_keys=True) + "\n"
        path.with_name(file.name + SUFFIX).write_text(text, encoding="utf-8")
        n_tasks, n_left_out = len(found.tasks), len(found.left_out)
        sys.stdout.write(f"{file.name}: {n_tasks} tasks, {n_left_out} left out\n")


if __name__ == "__main__":
    main()
