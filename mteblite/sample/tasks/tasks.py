"""The sample tasks as mteb task classes; an import of this module imports mteb.

Each class is an mteb task whose `load_data` reads installed packages instead of the hub. SOURCES.md
describes the texts.
"""

from __future__ import annotations

from typing import Any

from datasets import DatasetDict
from mteb.abstasks.abstask import AbsTask
from mteb.abstasks.classification import AbsTaskClassification
from mteb.abstasks.clustering import AbsTaskClustering
from mteb.abstasks.pair_classification import AbsTaskPairClassification
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

from mteblite.sample.tasks import aws, django_messages, emoji_names, icd10cm, lee
from mteblite.sample.tasks.dataset_shapes import clustered, labelled, paired, searched
from mteblite.sample.tasks.registry import SAMPLE_TASKS
from mteblite.sample.tasks.sources import SOURCES

DOCUMENTS_PER_CLUSTERING = 2048
"""mteb draws each clustering's documents with replacement. 300 draws from 300 documents would omit
a third of them, and copies of a document would raise the score (v-measure 0.43 instead of 0.35 for
WordLlama on EmojiSubgroupAr). 2,048 draws hold nearly all documents, at 0.3 s per model."""

_EMOJI: dict[str, Any] = {
    "category": "t2c",
    "date": ("2016-01-01", "2025-12-31"),
    "domains": ["Constructed", "Written"],
    "license": "bsd-3-clause",
    "annotations_creators": "expert-annotated",
    "sample_creation": "human-translated",
}
_ICD10CM: dict[str, Any] = {
    "date": ("2025-10-01", "2026-09-30"),
    "domains": ["Medical", "Written"],
    "license": "mit",
    "annotations_creators": "expert-annotated",
}


def _metadata(name: str, description: str, **facts: Any) -> TaskMetadata:
    """Metadata of a sample task: the registry's facts and mteb's other fields."""
    task = SAMPLE_TASKS[name]
    package = SOURCES[task.sources[0]].distribution
    languages = list(task.languages)
    return TaskMetadata(
        name=name,
        description=description,
        type=task.task_type,
        dataset={"path": f"mteblite/{name}", "revision": task.revision},
        reference=f"https://libraries.io/pypi/{package}",
        eval_splits=list(task.splits),
        eval_langs=languages
        if task.hf_subsets == ("default",)
        else {task.hf_subsets[0]: languages},
        main_score=task.main_metric,
        modalities=["text"],
        dialect=[],
        sample_creation=facts.pop("sample_creation", "found"),
        bibtex_citation=facts.pop("bibtex_citation", ""),
        contributed_by="mteblite",
        **facts,
    )


class _PackagedData:
    """A task whose data come from `_read`."""

    dataset: Any
    data_loaded: bool

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Read the installed packages; a changed data file is a warning."""
        if not self.data_loaded:
            self.dataset = self._read()
            self.data_loaded = True

    def _read(self) -> Any:
        raise NotImplementedError


class LeeDocSTS(_PackagedData, AbsTaskSTS):
    """Pairs of news documents with human ratings."""

    metadata = _metadata(
        "LeeDocSTS",
        "Pairs of 50 short news documents with mean human similarity ratings.",
        category="t2t",
        date=("2004-01-01", "2005-12-31"),
        domains=["News", "Written"],
        task_subtypes=[],
        license="not specified",
        annotations_creators="human-annotated",
        bibtex_citation="""@inproceedings{lee2005empirical,
  author = {Lee, Michael D. and Pincombe, Brandon and Welsh, Matthew},
  booktitle = {Proceedings of the Annual Meeting of the Cognitive Science Society},
  title = {An empirical evaluation of models of text document similarity},
  year = {2005},
}""",
    )
    min_score = 0
    max_score = 1

    def _read(self) -> DatasetDict:
        return paired(lee.rated_pairs(SOURCES["lee"].checked_folder()), "score")


class PolaritySentences(_PackagedData, AbsTaskClassification):
    """Sentences of film reviews: praise or blame."""

    metadata = _metadata(
        "PolaritySentences",
        "Sentences from film reviews that the reviewers marked as praise or blame.",
        category="t2c",
        date=("2000-01-01", "2005-12-31"),
        domains=["Reviews", "Written"],
        task_subtypes=["Sentiment/Hate speech"],
        license="not specified",
        annotations_creators="derived",
        bibtex_citation="""@inproceedings{pang2005seeing,
  author = {Pang, Bo and Lee, Lillian},
  booktitle = {Proceedings of the 43rd Annual Meeting of the ACL},
  title = {Seeing stars: exploiting class relationships for sentiment categorization},
  year = {2005},
}""",
    )

    def _read(self) -> DatasetDict:
        return labelled(lee.polarity_sentences(SOURCES["polarity"].checked_folder()))


class EmojiGroupAr(_PackagedData, AbsTaskClassification):
    """Arabic emoji names in eight groups."""

    metadata = _metadata(
        "EmojiGroupAr",
        "Arabic names of emoji, to be sorted into Unicode's eight groups.",
        task_subtypes=["Topic classification"],
        **_EMOJI,
    )

    def _read(self) -> DatasetDict:
        names, groups = SOURCES["emoji"], SOURCES["emoji-groups"]
        rows = emoji_names.names_by_group(names.checked_folder(), groups.checked_folder())
        return labelled(rows)


class ICD10CMChapter(_PackagedData, AbsTaskClustering):
    """Titles of diseases in ten chapters."""

    metadata = _metadata(
        "ICD10CMChapter",
        "Titles of ICD-10-CM categories, to be clustered by chapter.",
        category="t2c",
        task_subtypes=["Thematic clustering"],
        **_ICD10CM,
    )
    max_fraction_of_documents_to_embed = None
    max_documents_per_cluster = DOCUMENTS_PER_CLUSTERING

    def _read(self) -> DatasetDict:
        return clustered(icd10cm.chapter_titles(SOURCES["icd10cm"].checked_folder()))


class EmojiSubgroupAr(_PackagedData, AbsTaskClustering):
    """Arabic emoji names in twenty subgroups."""

    metadata = _metadata(
        "EmojiSubgroupAr",
        "Arabic names of emoji, to be clustered by Unicode's subgroups.",
        task_subtypes=["Thematic clustering"],
        **_EMOJI,
    )
    max_fraction_of_documents_to_embed = None
    max_documents_per_cluster = DOCUMENTS_PER_CLUSTERING

    def _read(self) -> DatasetDict:
        names, groups = SOURCES["emoji"], SOURCES["emoji-groups"]
        rows = emoji_names.names_by_subgroup(names.checked_folder(), groups.checked_folder())
        return clustered(rows)


class AwsTaskToOperation(_PackagedData, AbsTaskRetrieval):
    """Tasks in words of AWS's documentation, and the API operation for each."""

    metadata = _metadata(
        "AwsTaskToOperation",
        "Titles of examples in AWS's API definitions; relevant is the operation's documentation.",
        category="t2t",
        date=("2012-01-01", "2026-11-30"),
        domains=["Programming", "Written"],
        task_subtypes=["Question answering"],
        license="apache-2.0",
        annotations_creators="derived",
        prompt={"query": "Given a task, retrieve the API operation that does it"},
    )

    def _read(self) -> dict[str, dict[str, RetrievalSplitData]]:
        source = SOURCES["aws"]
        folder = source.checked_folder()
        data = aws.task_to_operation(folder, source.list_files(folder))
        relevant = {query: {document: 1} for query, document in data.relevant.items()}
        return searched(data.queries, data.documents, relevant, None)


class ICD10CMInclusionTerm(_PackagedData, AbsTaskRetrieval):
    """Other names of diseases, with hard negatives."""

    metadata = _metadata(
        "ICD10CMInclusionTerm",
        "Inclusion terms of ICD-10-CM; candidates are the code's title and those of its siblings.",
        category="t2t",
        task_subtypes=[],
        **_ICD10CM,
        prompt={"query": "Given a medical term, retrieve the diagnosis that includes it"},
    )

    def _read(self) -> dict[str, dict[str, RetrievalSplitData]]:
        data = icd10cm.rerank_inclusion_terms(SOURCES["icd10cm"].checked_folder())
        relevant = {
            query: {code: int(code == query.removeprefix("q-")) for code in codes}
            for query, codes in data.candidates.items()
        }
        return searched(data.queries, data.documents, relevant, data.candidates)


class ICD10CMSynonym(_PackagedData, AbsTaskPairClassification):
    """Pairs of a term and a title: same disease or not."""

    metadata = _metadata(
        "ICD10CMSynonym",
        "A term of ICD-10-CM with the title of its own code or of a sibling code.",
        category="t2t",
        task_subtypes=[],
        **_ICD10CM,
    )

    def _read(self) -> DatasetDict:
        return paired(icd10cm.synonym_pairs(SOURCES["icd10cm"].checked_folder()), "labels")


class DjangoUI(_PackagedData, AbsTaskBitextMining):
    """Interface messages in English and Arabic."""

    metadata = _metadata(
        "DjangoUI",
        "Messages of Django's interface, English and Arabic, by Django's translators.",
        category="t2t",
        date=("2005-01-01", "2026-11-30"),
        domains=["Programming", "Written"],
        task_subtypes=[],
        license="bsd-3-clause",
        annotations_creators="expert-annotated",
        sample_creation="human-translated and localized",
    )

    def _read(self) -> dict[str, DatasetDict]:
        source = SOURCES["django"]
        folder = source.checked_folder()
        pairs = django_messages.parallel_sentences(folder, source.list_files(folder))
        return {"en-ar": paired(pairs)}


TASK_CLASSES: dict[str, type[AbsTask]] = {
    task.metadata.name: task
    for task in (
        LeeDocSTS,
        PolaritySentences,
        EmojiGroupAr,
        ICD10CMChapter,
        EmojiSubgroupAr,
        AwsTaskToOperation,
        ICD10CMInclusionTerm,
        ICD10CMSynonym,
        DjangoUI,
    )
}
