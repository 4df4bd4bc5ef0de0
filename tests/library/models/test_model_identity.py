"""Identity follows content, never a path or a date."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from mteblite.models import model_identity
from mteblite.models.model_identity import identify, result_revision
from mteblite.suites.suite_model import SuiteModel


def checkpoint(folder: Path, value: float = 0.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    # In place, with the inode that was there; safetensors' own `save_file` makes a new file.
    (folder / "model.safetensors").write_bytes(save({"w": np.full(4, value, np.float32)}))
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def spec(folder: Path, name: str = "m") -> SuiteModel:
    return SuiteModel.named(name, "f", path=str(folder))


def age(folder: Path) -> None:
    """Let the files look old enough for their hashes to be kept."""
    for file in folder.iterdir():
        os.utime(file, (1, 1))


def test_overwritten_in_place_is_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hashes are kept at once, as of files that have not changed for a while.
    monkeypatch.setattr(model_identity, "_SETTLED_NS", -1)
    folder = checkpoint(tmp_path / "m", 1.0)
    before = identify(spec(folder), tmp_path / "home")
    state = (folder / "model.safetensors").stat()
    checkpoint(folder, 2.0)
    # Same size, and the old date put back, as `rsync --times` and `cp -p` do.
    os.utime(folder / "model.safetensors", ns=(state.st_atime_ns, state.st_mtime_ns))
    after = identify(spec(folder), tmp_path / "home")
    assert before.fingerprint != after.fingerprint
    assert before.revision != after.revision


def test_date_place_and_name_do_not_matter(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = identify(spec(checkpoint(tmp_path / "m", 1.0)), home)
    age(tmp_path / "m")
    assert identify(spec(tmp_path / "m"), home) == first
    shutil.copytree(tmp_path / "m", tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "README.md").write_text("notes")
    (tmp_path / "elsewhere" / "optimizer.bin").write_bytes(b"momentum")
    assert identify(spec(tmp_path / "elsewhere", "other-name"), home) == first


def test_config_counts_as_content(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    before = identify(spec(folder), home)
    (folder / "config.json").write_text('{"pooling": "cls"}')
    assert identify(spec(folder), home).fingerprint != before.fingerprint


def test_unchanged_files_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    monkeypatch.setattr(model_identity, "_SETTLED_NS", -1)
    first = identify(spec(folder), home)
    files = json.loads((home / model_identity.CACHE_FILE).read_text())["files"]
    assert len(files) == 3
    hashed: list[Path] = []
    monkeypatch.setattr(model_identity, "sha256_of", lambda f: hashed.append(f) or "new")
    assert identify(spec(folder), home) == first
    assert not hashed


def test_variants_share_the_checkpoints_vectors(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    plain = identify(spec(folder), home)
    norm, cut = identify(spec(folder, "m+norm"), home), identify(spec(folder, "m@dim=2"), home)
    assert len({plain.fingerprint, norm.fingerprint, cut.fingerprint}) == 3
    assert {plain.base_fingerprint, norm.base_fingerprint, cut.base_fingerprint} == {
        plain.fingerprint
    }


def test_given_prompts_make_another_model_on_the_same_checkpoint(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    plain = identify(spec(folder), home)
    prompted_spec = SuiteModel.named("m", "f", path=str(folder), prompts={"query": "q: "})
    prompted = identify(prompted_spec, home)
    assert prompted.fingerprint != plain.fingerprint
    assert prompted.base_fingerprint == plain.base_fingerprint
    revisions = {
        result_revision(spec(folder), plain, None),
        result_revision(spec(folder), plain, 512),
        result_revision(prompted_spec, prompted, None),
        result_revision(spec(folder), plain, None, "bfloat16"),
    }
    assert len(revisions) == 4


def test_hub_models_are_their_revision(tmp_path: Path) -> None:
    first = identify(SuiteModel.named("org/m", "f", revision="abc"), tmp_path)
    assert (first.revision, first.source) == ("abc", "hub")
    second = identify(SuiteModel.named("org/m", "f", revision="def"), tmp_path)
    assert first.fingerprint != second.fingerprint
    registered = identify(SuiteModel.named("mteb/baseline-random-encoder", "random"), tmp_path)
    assert registered.revision == "2"
    assert result_revision(SuiteModel.named("org/m", "f"), first, None) == "abc"


def test_unusable_folders_say_what_is_wrong(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(ValueError, match=r"model 'm': no folder at .*gone"):
        identify(spec(tmp_path / "gone"), home)
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"holds no weights .*safetensors"):
        identify(spec(empty), home)
    cut = checkpoint(tmp_path / "cut")
    whole = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(whole[:-3])
    with pytest.raises(ValueError, match="cut short"):
        identify(spec(cut), home)
    sharded = checkpoint(tmp_path / "sharded")
    (sharded / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"w": "model.safetensors", "v": "model-2.safetensors"}})
    )
    with pytest.raises(ValueError, match=r"missing.*model-2"):
        identify(spec(sharded), home)


def test_an_unknown_hub_name_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    def refused(*_: object, **__: object) -> None:
        raise ConnectionError("nobody there")

    monkeypatch.setattr(HfApi, "model_info", refused)
    with pytest.raises(ValueError, match=r"'nobody/nothing' is not in mteb's registry.*revision:"):
        identify(SuiteModel.named("nobody/nothing", "f"), tmp_path)


def test_a_damaged_cache_costs_only_time(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    first = identify(spec(folder), home)
    home.mkdir(exist_ok=True)
    (home / model_identity.CACHE_FILE).write_text("{half")
    assert identify(spec(folder), home) == first


def test_an_ordinary_folder_keeps_the_identity_of_earlier_versions(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", 1.0)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    found = identify(spec(folder), tmp_path / "home").fingerprint
    assert found == "369793058e8f19b00ebe1844ec91dd73", "stored vectors would be lost"


def test_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_identity, "_SETTLED_NS", -1)
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    for name in ("mean", "last"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(f'{{"pooling_mode": "{name}"}}')
    link = folder / "1_Pooling"
    link.symlink_to(tmp_path / "mean")
    (folder / "again").symlink_to(folder)
    mean = identify(spec(folder), home)
    assert identify(spec(folder), home) == mean
    link.unlink()
    link.symlink_to(tmp_path / "last")
    last = identify(spec(folder), home)
    assert last.fingerprint != mean.fingerprint
    (tmp_path / "last" / "config.json").write_text('{"pooling_mode": "mean"}')
    assert identify(spec(folder), home) == mean
    weights = tmp_path / "blob"
    (folder / "model.safetensors").rename(weights)
    (folder / "model.safetensors").symlink_to(weights)
    assert identify(spec(folder), home) == mean


def test_an_adapter_is_its_base_too(tmp_path: Path) -> None:
    home, base = tmp_path / "home", checkpoint(tmp_path / "base")
    adapter = checkpoint(tmp_path / "adapter")
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    config = {"base_model_name_or_path": str(base)}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    before = identify(spec(adapter), home)
    checkpoint(base, 3.0)
    assert identify(spec(adapter), home).fingerprint != before.fingerprint


def test_a_module_folder_of_any_name_counts(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", checkpoint(tmp_path / "m")
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "x.Transformer"},
        {"idx": 1, "name": "1", "path": "eval", "type": "x.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "eval").mkdir()
    (folder / "eval" / "config.json").write_text("{}")
    before = identify(spec(folder), home)
    (folder / "eval" / "config.json").write_text('{"pooling_mode": "cls"}')
    assert identify(spec(folder), home).fingerprint != before.fingerprint
