"""The tabular list of ICD-10-CM: chapters, categories, codes and their inclusion terms.

They are read from the XML file of simple-icd-10-cm, because an import of the package parses all
of it. An inclusion term is another name of its code, given by the editors (CDC/NCHS). Sibling codes
of the same three-character category are hard negatives.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from mteblite.sample.tasks.sampling import draw

N_CHAPTERS, PER_CHAPTER = 10, 30
N_QUERIES, N_NEGATIVES = 150, 9
N_PAIRS_PER_LABEL = 200
MIN_SIBLINGS = 6

_CATCH_ALL = re.compile(r"\b(nos|unspecified|other|not elsewhere|nec)\b|[\[\](){}]", re.IGNORECASE)
_STOP_WORDS = frozenset(
    {"a", "an", "and", "any", "as", "at", "by", "due", "for", "from", "in"}
    | {"is", "of", "on", "or", "the", "to", "with", "without"}
)


@dataclass(frozen=True, order=True)
class Term:
    """An inclusion term with its code and hard negatives.

    Attributes:
        code: the term's code.
        term: the inclusion term.
        title: the code's own title.
        siblings: (code, title) of other codes of the category, neither above nor below `code`.
    """

    code: str
    term: str
    title: str
    siblings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reranking:
    """Queries with short candidate lists.

    Attributes:
        queries: query text by query id (the code of the term).
        documents: document text by document id (the code).
        candidates: document ids by query id.
    """

    queries: dict[str, str]
    documents: dict[str, str]
    candidates: dict[str, list[str]]


def chapter_titles(folder: Path) -> list[tuple[str, str]]:
    """Return (category title, chapter) rows: the 10 largest chapters, 30 titles each."""
    by_chapter: dict[str, set[str]] = {}
    for chapter in _tree(folder).iter("chapter"):
        titles = {_text(d, "desc") for s in chapter.findall("section") for d in s.findall("diag")}
        name = re.sub(r"\s*\([A-Z0-9]+-[A-Z0-9]+\)$", "", _text(chapter, "desc"))
        by_chapter[name] = {t for t in titles if not _CATCH_ALL.search(t)}
    largest = sorted(by_chapter, key=lambda name: (-len(by_chapter[name]), name))[:N_CHAPTERS]
    rows = []
    for name in largest:
        rows += [(t, name) for t in draw(by_chapter[name], PER_CHAPTER, "ICD10CMChapter", name)]
    return sorted(rows)


def rerank_inclusion_terms(folder: Path) -> Reranking:
    """Return 150 queries of distinct categories, each with its code and up to 9 siblings."""
    terms = _one_per_category(folder)
    chosen = draw(sorted(terms), N_QUERIES, "ICD10CMInclusionTerm")
    result = Reranking({}, {}, {})
    for category in chosen:
        term = terms[category]
        size = min(N_NEGATIVES, len(term.siblings))
        negatives = draw(term.siblings, size, "ICD10CMInclusionTerm", term.code)
        candidates = sorted([(term.code, term.title), *negatives])
        result.queries[f"q-{term.code}"] = term.term
        result.documents.update(candidates)
        result.candidates[f"q-{term.code}"] = [code for code, _ in candidates]
    return result


def synonym_pairs(folder: Path) -> list[tuple[str, str, int]]:
    """Return (term, title, label): 200 terms, each with its own title (1) and a sibling's (0).

    The categories are not those of the reranking task.
    """
    terms = _one_per_category(folder)
    used = set(draw(sorted(terms), N_QUERIES, "ICD10CMInclusionTerm"))
    pairs = []
    for category in draw(set(terms) - used, N_PAIRS_PER_LABEL, "ICD10CMSynonym"):
        term = terms[category]
        ((_, other),) = draw(term.siblings, 1, "ICD10CMSynonym", term.code)
        pairs += [(term.term, term.title, 1), (term.term, other, 0)]
    return sorted(pairs)


def _one_per_category(folder: Path) -> dict[str, Term]:
    """One usable term of each category, so that all categories have equal weight."""
    by_category: dict[str, list[Term]] = {}
    for section in _tree(folder).iter("section"):
        for category in section.findall("diag"):
            terms = _usable_terms(category)
            if terms:
                by_category[_text(category, "name")] = terms
    return {c: draw(terms, 1, "ICD10CM", c)[0] for c, terms in by_category.items()}


def _usable_terms(category: ET.Element) -> list[Term]:
    codes = {_text(d, "name"): _text(d, "desc") for d in category.iter("diag") if d is not category}
    terms = []
    for diag in category.iter("diag"):
        code = _text(diag, "name")
        if code not in codes:
            continue
        title = codes[code]
        notes = (note.text or "" for note in diag.findall("inclusionTerm/note"))
        names = [" ".join(note.split()) for note in notes]
        usable = [name for name in names if _is_usable(name, title)]
        siblings = _siblings(code, codes) if usable else ()
        if len(siblings) >= MIN_SIBLINGS:
            terms += [Term(code, name, title, siblings) for name in usable]
    return terms


def _siblings(code: str, codes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Other codes with distinct titles; a prefix of a code is its ancestor and left out."""
    seen = {codes[code]}
    found = []
    for other, title in sorted(codes.items()):
        related = other.startswith(code) or code.startswith(other)
        if not related and title not in seen:
            seen.add(title)
            found.append((other, title))
    return tuple(found)


def _is_usable(term: str, title: str) -> bool:
    """Whether the term is no catch-all and shares at most one word with the title."""
    if _CATCH_ALL.search(term) or len(term.split()) < 2:
        return False
    return len(_content_words(term) & _content_words(title)) <= 1


def _content_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower())) - _STOP_WORDS


def _tree(folder: Path) -> ET.Element:
    files = sorted((folder / "data").glob("icd10c-tabular-*.xml"))
    return ET.parse(files[-1]).getroot()


def _text(element: ET.Element, tag: str) -> str:
    return " ".join((element.findtext(tag) or "").split())
