"""Files inside installed packages, found without an import of the packages.

Sample tasks and packaged models read data files of other packages. A file is located by the import
system (`find_spec` runs no code of a top-level package) or by the package's metadata. Its SHA-256
shows whether it is the file of the published numbers.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from pathlib import Path

from mteblite.files import file_state, sha256_of

EXTRA = "mteblite[sample]"


def package_folder(import_name: str, distribution: str) -> Path:
    """Return the folder of a top-level package, without an import of it.

    Raises:
        ValueError: the package is not installed.
    """
    spec = importlib.util.find_spec(import_name)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(_missing(distribution))
    return Path(next(iter(spec.submodule_search_locations)))


def distribution_file(distribution: str, member: str) -> Path:
    """Return the path of a file that a distribution installed, e.g. `wordllama/weights/x.bin`.

    It also finds folders whose name is no import name (hyphens), which `find_spec` does not.

    Raises:
        ValueError: the distribution is not installed, or has no such file.
    """
    try:
        path = Path(str(importlib.metadata.distribution(distribution).locate_file(member)))
    except importlib.metadata.PackageNotFoundError:
        raise ValueError(_missing(distribution)) from None
    if not path.is_file():
        version = importlib.metadata.version(distribution)
        raise ValueError(
            f"package {distribution} {version} has no file {member}; expected the version that "
            f"mteblite pins: reinstall it with `pip install '{EXTRA}'`"
        )
    return path


def cached_sha256(path: Path) -> str:
    """Return a file's SHA-256, read once per process unless its size, times or inode change."""
    return _sha256(path, file_state(path))


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, _state: tuple[int, ...]) -> str:
    return sha256_of(path)


def _missing(distribution: str) -> str:
    return (
        f"package {distribution} is not installed; the sample suite reads its files: "
        f"`pip install '{EXTRA}'`"
    )
