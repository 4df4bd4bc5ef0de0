"""README.md of a release: a data set card for `datasets` and the hub, and instructions."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from mteblite.releases.markdown import table
from mteblite.releases.suite_release import SuiteRelease

SPLIT = "selected"
TABLES = ("calibrations", "intervals")
"""Configurations beside those of the tasks (`suite_release.RESERVED`)."""

TEXT = """\
# mteblite selection `{version}`

{n_items} selected items of {n_tasks} tasks, with weights, item parameters and calibrations: what
is needed to predict the full scores of the suite `{suite}` for a new text-embedding model from its
results on these items alone. [SELECTION.md](SELECTION.md) says what was selected, from what, and
how well it predicts.

**No text of any benchmark is in here.** Items are named by their ids; texts come from each task's
own data set, at the revision named below, under that data set's own licence, and are checked
against hashes.

## Use
Score a model (a hub name or a sentence-transformers folder), on any machine:
```
pip install mteblite
mteblite score MODEL --release FOLDER
```
The same in Python; a model is a name, the folder of a checkpoint, or a loaded model:
```python
import mteblite

scores = mteblite.score("MODEL", "FOLDER")
print(scores.value, scores.lower, scores.upper)  # {headline}, a fraction; also scores.tasks
```
Or run the selected items as plain mteb tasks; these scores are of the items, not yet predictions:
```python
import mteb

mteb.evaluate(mteb.get_model("MODEL"), mteblite.released_tasks("FOLDER"))
```
Or read the tables:
```python
from datasets import load_dataset

load_dataset("FOLDER", "{first}", split="{split}")  # also "calibrations", "intervals"
```

## Tasks
{tasks}

## Files
| file | what |
|---|---|
| `release.json` | format, version, tasks with data revisions, program versions |
| `tasks/<task>/items.parquet` | selected items: id, rank, weight, parameters, hashes of texts |
| `tasks/<task>/fitted.json` | the fitted task: parameters of all pool items, calibration |
| `tasks/<task>/pool/` | candidates, judgements, train rows, distractors; texts as hashes |
| `calibrations.parquet` | per task the line from the estimate to the full score |
| `intervals.parquet` | per target the half-width of its interval |
{joint}| `checksums.sha256` | SHA-256 of every other file; `sha256sum -c checksums.sha256` |

Labels and strata are numbered, not named. Scores are fractions. Made with {made_with}.
"""


def card(release: SuiteRelease, folders: Mapping[str, str]) -> str:
    """Return README.md; `folders` is the folder of each task's files, by task."""
    first = release.tasks[0]
    made_with = ", ".join(f"{name} {v}" for name, v in sorted(release.versions.items()))
    rows = [
        {
            "task": t.task,
            "type": t.description.task_type,
            "items": len(t.fitted.selection),
            "metric": t.description.main_metric,
            "split": ", ".join(t.description.splits),
            "subsets": ", ".join(t.description.hf_subsets),
            "data revision": t.description.dataset_revision or "-",
        }
        for t in release.tasks
    ]
    joint = "| `joint.json` | the joint calibration of all tasks |\n" if release.joint else ""
    header = yaml.safe_dump(_header(release, folders), sort_keys=False, allow_unicode=True)
    body = TEXT.format(
        version=release.version, n_items=release.n_items, n_tasks=len(release.tasks),
        suite=release.suite, first=folders[first.task], split=SPLIT, tasks=table(rows),
        joint=joint, made_with=made_with, headline=release.headline.replace("_", " "),
    )  # fmt: skip
    return f"---\n{header}---\n\n{body}"


def _header(release: SuiteRelease, folders: Mapping[str, str]) -> dict[str, object]:
    paths = {folders[t.task]: f"tasks/{folders[t.task]}/items.parquet" for t in release.tasks}
    paths |= {name: f"{name}.parquet" for name in TABLES}
    return {
        "pretty_name": f"mteblite selection {release.version}",
        # A release holds ids and numbers. The texts keep their data sets' licences.
        "license": "other",
        "license_name": "ids-and-numbers-only",
        "tags": ["mteb", "mteblite", "text-embeddings", "benchmark", "item-response-theory"],
        "configs": [
            {"config_name": name, "data_files": [{"split": SPLIT, "path": path}]}
            for name, path in paths.items()
        ],
    }
