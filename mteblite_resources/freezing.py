"""Write the frozen tasks of the packaged suites: `python -m mteblite_resources.freezing`.

Asks the installed mteb, so run it with the version that the project pins; what changes shows in
the diff. Tasks of the user's own data and of the sample suite are not frozen: the one are not
here, the other depend on packages that only a home can ask.
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
    """Return what the installed mteb says of a packaged suite's tasks."""
    of_mteb = [t for t in file.tasks if t.path is None]
    asked = file.model_copy(update={"tasks": of_mteb})
    return resolve_tasks(asked, f"{file.name}.yaml", MtebTasks(), Resolution())


def main() -> None:
    """Freeze every packaged suite."""
    for path in sorted(packaged_suites().glob("*.yaml")):
        file = read_suite_file(path)
        if file.name in NOT_FROZEN:
            continue
        found = freeze(file)
        text = json.dumps(resolution_to_json(found), indent=1, sort_keys=True) + "\n"
        path.with_name(file.name + SUFFIX).write_text(text, encoding="utf-8")
        line = f"{file.name}: {len(found.tasks)} tasks, {len(found.left_out)} left out"
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
