"""The sample tasks by name: facts as plain data, and the task objects.

Only `sample_task` imports mteb, so that a plan of a run needs no mteb.
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
    """Facts of a sample task.

    Attributes:
        main_metric: name of mteb's main score.
        languages: mteb's language codes.
        sources: keys of its texts' SOURCES.
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
        """Revision of the pinned data: 16 hex digits over recipe and files."""
        text = "\n".join([str(RECIPE_VERSION), *(SOURCES[key].digest for key in self.sources)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def sample_task(name: str) -> AbsTask | None:
    """Return a new, unloaded mteb task object; None if `name` is no sample task."""
    if name not in SAMPLE_TASKS:
        return None
    from mteblite.sample.tasks import tasks

    return tasks.TASK_CLASSES[name]()
