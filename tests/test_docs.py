"""What docstrings and comments cite is in the repository, down to the heading."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOORS = ("mteblite", "mteblite_resources", "mteblite_assets")
METHODS = "docs/methods.md"
WRITTEN = {"SELECTION.md"}
"""Documents that the product writes; they are in a release, not in the repository."""
DOCUMENT = re.compile(r"[\w./-]*\w\.md\b")


def texts(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every docstring, other string and block of comments of the modules, in one line."""
    for path in sorted(root.rglob("*.py")):
        comment: list[str] = []
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT:
                    comment.append(token.string.lstrip("# "))
                elif token.type == tokenize.STRING:
                    yield path, " ".join(token.string.split())
                elif token.type != tokenize.NL and comment:
                    yield path, " ".join(" ".join(comment).split())
                    comment = []


def headings() -> list[str]:
    lines = (ROOT / METHODS).read_text("utf-8").splitlines()
    return [line.lstrip("#").strip() for line in lines if line.startswith("#")]


def wrong_citations(text: str) -> list[str]:
    """What follows `docs/methods.md` where it is not a heading and the end of a clause."""
    known = "|".join(map(re.escape, headings()))
    right = re.compile(rf", (?:{known})[.;:)]")
    rest = [text[m.end() :] for m in re.finditer(re.escape(METHODS), text)]
    return [part[:60] for part in rest if not right.match(part)]


def test_citations_of_the_methods_name_a_heading() -> None:
    found = [(p, t) for floor in (*FLOORS, "tests/support") for p, t in texts(ROOT / floor)]
    cited = [(p, t) for p, t in found if METHODS in t]
    assert len(cited) > 20
    wrong = {str(p.relative_to(ROOT)): w for p, t in cited if (w := wrong_citations(t))}
    assert wrong == {}


def test_a_heading_that_is_not_there_is_noticed() -> None:
    assert wrong_citations("(docs/methods.md, Abilities)") == []
    assert wrong_citations("(docs/methods.md, Abilities of giants)") != []
    assert wrong_citations("See docs/methods.md.") != []


def test_cited_documents_are_in_the_repository() -> None:
    wrong = {
        (str(path.relative_to(ROOT)), name)
        for floor in FLOORS
        for path, text in texts(ROOT / floor)
        for name in DOCUMENT.findall(text)
        if name not in WRITTEN
        and not any((folder / name).is_file() for folder in (ROOT, path.parent))
    }
    assert wrong == set()


def test_headings_of_the_methods_are_unique() -> None:
    assert len(set(headings())) == len(headings())


def test_links_between_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    broken = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []
