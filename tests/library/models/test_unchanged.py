"""No vector is stored under the identity of files that changed while the weights were read."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mteblite.models import loading, model_identity
from mteblite.models.encoders import open_encoder
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.model_identity import identify
from mteblite.models.unchanged import unchanged
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore

TEXTS = ["word1 word2", "word3"]
CHANGED = "model 'm' changed since this run started"


def spec(folder: Path) -> SuiteModel:
    return SuiteModel.named("m", "f", path=str(folder))


def overwrite(folder: Path, *others: Path) -> None:
    """Write other content into the same files, with the same times, as `cp -p` does."""
    for file in (f for other in others for f in other.rglob("*") if f.is_file()):
        place = folder / file.relative_to(next(o for o in others if o in file.parents))
        times = place.stat()
        place.write_bytes(file.read_bytes())
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("put_back", [False, True])
def test_weights_that_are_overwritten_before_they_are_read_are_not_stored(
    tmp_path: Path,
    static_folder: Callable[..., Path],
    tiny_tasks: Any,
    monkeypatch: pytest.MonkeyPatch,
    put_back: bool,
) -> None:
    # Hashes are kept at once, as of files that have not changed for a while.
    monkeypatch.setattr(model_identity, "_SETTLED_NS", -1)
    folder = static_folder(tmp_path / "m", seed=0)
    other = static_folder(tmp_path / "other", seed=1)
    first = shutil.copytree(folder, tmp_path / "first")
    load = loading._load

    def overwritten(*arguments: Any) -> Any:
        overwrite(folder, other)
        inner = load(*arguments)
        if put_back:
            overwrite(folder, first)
        return inner

    home = tmp_path / "home"
    encoder = open_encoder(
        spec(folder), identify(spec(folder), home), VectorStore(home / "vectors"), home=home
    )
    time.sleep(0.05)  # longer than a tick of the file system's clock
    monkeypatch.setattr(loading, "_load", overwritten)
    with pytest.raises(ModelError, match=CHANGED):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    assert not list((home / "vectors").rglob("*.npy"))


def test_the_cache_of_hashes_hides_no_change(
    tmp_path: Path, static_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may keep no time of the change; the content counts."""
    folder, other = static_folder(tmp_path / "m"), static_folder(tmp_path / "other", seed=1)
    for module in ("model_identity", "unchanged"):
        monkeypatch.setattr(
            f"mteblite.models.{module}.file_state", lambda f: (f.stat().st_size, 0, 0, 0)
        )
    identity = identify(spec(folder), tmp_path)
    with pytest.raises(ModelError, match=CHANGED), unchanged(spec(folder), identity, tmp_path):
        overwrite(folder, other)


def test_the_base_of_an_adapter_counts(
    tmp_path: Path, static_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_identity, "check_checkpoint", lambda *_, **__: None)
    base, other = static_folder(tmp_path / "base"), static_folder(tmp_path / "other", seed=1)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    first = shutil.copytree(base, tmp_path / "first")
    identity = identify(spec(adapter), tmp_path)
    with unchanged(spec(adapter), identity, tmp_path):
        pass
    with pytest.raises(ModelError, match=CHANGED), unchanged(spec(adapter), identity, tmp_path):
        overwrite(base, other, first)


def test_a_package_that_is_installed_anew_meanwhile_is_not_stored(
    tmp_path: Path, tiny_tasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wordllama", reason="the extra `sample` is not installed")
    from mteblite.sample.models import catalog, load

    files = {f: shutil.copy(f, tmp_path) for f in catalog.weight_files("wordllama-64")}
    real = catalog.distribution_file
    monkeypatch.setattr(catalog, "distribution_file", lambda *f: Path(files[real(*f)]))
    package = SuiteModel.named("package:wordllama-64", "w")
    store, inner = VectorStore(tmp_path / "vectors"), load.load_packaged

    def installed(*arguments: Any) -> Any:
        encoder = inner(*arguments)
        for file in files.values():
            Path(file).write_bytes(Path(file).read_bytes() + b" ")
        return encoder

    monkeypatch.setattr(load, "load_packaged", installed)
    encoder = open_encoder(package, identify(package, tmp_path), store, home=tmp_path)
    with pytest.raises(ModelError, match="'package:wordllama-64' changed since"):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    assert not list(store.root.rglob("*.npy"))
    with pytest.raises(ModelError, match="'package:wordllama-64' changed since"):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
