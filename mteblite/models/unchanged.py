"""A model's files are those of its identity while its weights are read, and not only before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mteblite.files import file_state
from mteblite.models.checkpoint_files import adapter_base, model_files
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.model_identity import ModelIdentity, identify
from mteblite.suites.suite_model import SuiteModel


@contextmanager
def unchanged(
    spec: SuiteModel, identity: ModelIdentity, home: Path, backend: str = "torch"
) -> Iterator[None]:
    """Refuse a model whose files change before or while the code inside loads its weights.

    Afterwards the files of a folder are hashed again, whatever the cache of hashes says. Sizes,
    times and inodes are compared too: content that was put back has changed in between.

    Args:
        spec: the model.
        identity: what `identify` returned for the files that may be read.
        home: folder of the cache of file hashes.
        backend: the backend that reads the weights.

    Raises:
        ModelError: the files are or were those of another model.
    """
    before = _states(spec)
    if identify(spec, home, backend) != identity:
        raise _changed(spec)
    yield
    if _states(spec) != before or identify(spec, home, backend, cached=False) != identity:
        raise _changed(spec)


def _changed(spec: SuiteModel) -> ModelError:
    return ModelError(
        f"model {spec.name!r} changed since this run started: run again to score it as a new model"
    )


def _states(spec: SuiteModel) -> list[tuple[str, tuple[int, ...]]]:
    """The states of all files that a loader can open; none for a revision of the hub."""
    if spec.is_packaged:
        from mteblite.sample.models.catalog import weight_files

        files = weight_files(spec.packaged_name)
    else:
        files = [] if spec.path is None else _files(Path(spec.path))
    return [(str(file), file_state(file)) for file in files if file.exists()]


def _files(folder: Path) -> list[Path]:
    """The files of a folder and, for an adapter, of the folder of its base."""
    base = adapter_base(folder)
    return model_files(folder) + (_files(Path(base)) if base and Path(base).is_dir() else [])
