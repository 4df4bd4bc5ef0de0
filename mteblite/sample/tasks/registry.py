"""The sample tasks by name: short facts as plain data, and the task objects on demand.

Importable without mteb, so that planning a run costs nothing; `sample_task` imports it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mteblite.sample.tasks.sources import RECIPE_VERSION, SOURCES

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


@dataclass(frozen=True)
class SampleTask:
    """Facts about one sample task.

    Attributes:
        name: mteb-style task name.
        task_type: mteb's type.
        main_metric: name of mteb's main score.
        splits: evaluation splits.
        hf_subsets: subsets.
        languages: mteb's language codes.
        sources: keys of SOURCES that its text comes from.
    """

    name: str
    task_type: str
    main_metric: str
    languages: tuple[str, ...]
    sources: tuple[str, ...]
    splits: tuple[str, ...] = ("test",)
    hf_subsets: tuple[str, ...] = ("default",)

    @property
    def revision(self) -> str:
        """Revision of the data as pinned: recipe and files (16 hex digits)."""
        return _revision([SOURCES[key].digest for key in self.sources])


_ENGLISH, _ARABIC = ("eng-Latn",), ("ara-Arab",)

SAMPLE_TASKS: dict[str, SampleTask] = {
    task.name: task
    for task in (
        SampleTask("LeeDocSTS", "STS", "cosine_spearman", _ENGLISH, ("lee",)),
        SampleTask("PolaritySentences", "Classification", "accuracy", _ENGLISH, ("polarity",)),
        SampleTask(
            "EmojiGroupAr", "Classification", "accuracy", _ARABIC, ("emoji", "emoji-groups")
        ),
        SampleTask("ICD10CMChapter", "Clustering", "v_measure", _ENGLISH, ("icd10cm",)),
        SampleTask(
            "EmojiSubgroupAr", "Clustering", "v_measure", _ARABIC, ("emoji", "emoji-groups")
        ),
        SampleTask("AwsTaskToOperation", "Retrieval", "ndcg_at_10", _ENGLISH, ("aws",)),
        SampleTask("ICD10CMInclusionTerm", "Reranking", "map_at_1000", _ENGLISH, ("icd10cm",)),
        SampleTask("ICD10CMSynonym", "PairClassification", "max_ap", _ENGLISH, ("icd10cm",)),
        SampleTask(
            "DjangoUI",
            "BitextMining",
            "f1",
            (*_ENGLISH, *_ARABIC),
            ("django",),
            hf_subsets=("en-ar",),
        ),
    )
}
"""The nine tasks. Summarization is missing: no package ships human ratings of summaries."""


def installed_revision(name: str) -> str:
    """Return the revision of a task's data as installed here.

    Equals `SAMPLE_TASKS[name].revision` where the pinned package versions are installed.

    Raises:
        KeyError: no such sample task.
        ValueError: a package is not installed.
    """
    return _revision([SOURCES[key].installed_digest() for key in SAMPLE_TASKS[name].sources])


def sample_task(name: str) -> AbsTask | None:
    """Return a new, unloaded mteb task object; None if `name` is no sample task."""
    if name not in SAMPLE_TASKS:
        return None
    from mteblite.sample.tasks import tasks

    return tasks.TASK_CLASSES[name]()


def _revision(digests: list[str]) -> str:
    text = "\n".join([str(RECIPE_VERSION), *digests])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
