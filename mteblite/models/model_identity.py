"""A model's identity: a hash of its files or its hub revision, never its path.

A checkpoint that is overwritten in place becomes another model. The old vectors and results stay
valid for the old one. Hashes of files are cached in a JSON file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mteblite.files import file_state, read_json, sha256_of, write_json
from mteblite.models.checkpoint_checks import check_checkpoint
from mteblite.models.checkpoint_files import adapter_base, model_files
from mteblite.suites.suite_model import SuiteModel

CACHE_FILE = "model_identity.json"

# A file written more recently could change again without a change of its time stamp.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class ModelIdentity:
    """The model that a name stands for now.

    Attributes:
        fingerprint: 32 hex digits over the checkpoint, the variant, and the spec's prompts and
            prompt strategy.
        revision: hub revision; for local and packaged models the start of `base_fingerprint`.
        source: `hub`, `local` or `package`.
        base_fingerprint: 32 hex digits over the checkpoint alone; its vectors' folder.
    """

    fingerprint: str
    revision: str
    source: str
    base_fingerprint: str


def identify(
    spec: SuiteModel, home: Path, backend: str = "torch", *, cached: bool = True
) -> ModelIdentity:
    """Return the identity of a model, after a check of its files.

    Args:
        spec: the model.
        home: folder of the cache of file hashes and hub revisions.
        backend: the backend that will read the weights.
        cached: whether hashes of a folder's files are taken from the cache; False = all are read.

    Raises:
        ValueError: the folder holds no model that can be run (`check_checkpoint`), the package is
            not installed, or the hub revision cannot be found.
    """
    if spec.is_packaged:
        from mteblite.sample.models.catalog import fingerprint

        source, base = "package", _digest("package", fingerprint(spec.packaged_name))
    elif spec.path is not None:
        folder = Path(spec.path)
        check_checkpoint(
            folder, f"model {spec.name!r}: ", backend=backend, trusted=spec.trust_remote_code
        )
        content = fingerprint_folder(folder, home, cached=cached)
        source, base = "local", _digest("local", content)
    else:
        source, revision = "hub", spec.revision or hub_revision(spec.base, home)
        base = _digest("hub", spec.base, revision)
    prompts = json.dumps(spec.prompts, sort_keys=True) if spec.prompts else ""
    if spec.strategy:
        prompts += f"|{spec.strategy}"
    own = _digest(base, spec.variant, prompts) if spec.variant or prompts else base
    return ModelIdentity(own, revision if source == "hub" else base[:16], source, base)


def result_revision(
    spec: SuiteModel, identity: ModelIdentity, max_tokens: int | None, numerics: str = ""
) -> str:
    """Return the revision of a model's result files, which names all that its scores depend on.

    With mteb's own settings (no token cap, registry prompts, float32) it is the plain revision,
    so that the results can be compared with published ones.

    Args:
        spec: the model. Its variant is part of its name, not of the revision.
        identity: its identity.
        max_tokens: the suite's token cap.
        numerics: precision and backend where they are not the default.
    """
    parts = [identity.revision]
    if max_tokens is not None:
        parts.append(f"{max_tokens}tokens")
    if spec.prompts:
        parts.append("prompts" + _digest(json.dumps(spec.prompts, sort_keys=True))[:8])
    if spec.strategy:
        parts.append(f"{spec.strategy}-prompts")
    return "-".join([*parts, numerics] if numerics else parts)


def fingerprint_folder(folder: Path, home: Path, *, cached: bool = True) -> str:
    """Return a hash over the names and contents of all files that a loader can open.

    The base model of an adapter counts too: the content of a folder, the revision of a hub model.

    Args:
        folder: a sentence-transformers (or transformers) folder that `check_checkpoint` accepts.
        home: folder of the cache of hashes, by path, size, times and inode of a file.
        cached: see `identify`.

    Raises:
        ValueError: the revision of an adapter's base cannot be found.
    """
    folder = folder.resolve()
    known = read_json(home / CACHE_FILE).get("files", {}) if cached else {}
    fresh: dict[str, Any] = {}
    lines = []
    for file in (f for f in model_files(folder) if f.exists()):
        state = file_state(file)
        entry = known.get(str(file))
        if entry is None or entry["state"] != list(state):
            entry = {"state": list(state), "sha256": sha256_of(file)}
            settled = time.time_ns() - max(state[1], state[2]) > _SETTLED_NS
            # A file that is being written is not cached.
            if settled and file_state(file) == state:
                fresh[str(file)] = entry
        lines.append(f"{file.relative_to(folder).as_posix()}\0{entry['sha256']}")
    if fresh:
        _update_cache(home, "files", fresh)
    base = adapter_base(folder)
    if base:
        lines.append(f"base\0{_base_identity(base, home, cached)}")
    return _digest(*lines)


def _base_identity(base: str, home: Path, cached: bool) -> str:
    """The content of an adapter's base folder, or the revision of its base on the hub."""
    if Path(base).is_dir():
        return fingerprint_folder(Path(base), home, cached=cached)
    # The library that loads the base takes the main revision, whatever mteb's registry says.
    return f"{base}@{_cached_revision(base) or _remote_revision(base)}"


def hub_revision(name: str, home: Path) -> str:
    """Return a hub model's revision from mteb's registry, the local hub cache or the hub.

    The first answer is cached, so that a new revision on the hub does not change the model.

    Raises:
        ValueError: the model is in none of them.
    """
    from importlib.metadata import version

    key = f"{name}@mteb-{version('mteb')}"
    known = read_json(home / CACHE_FILE).get("revisions", {})
    if key in known:
        return str(known[key])
    found = _registry_revision(name) or _cached_revision(name) or _remote_revision(name)
    _update_cache(home, "revisions", {key: found})
    return found


def _registry_revision(name: str) -> str | None:
    import mteb

    try:
        return mteb.get_model_meta(name).revision
    except KeyError:
        return None


def _cached_revision(name: str) -> str | None:
    from huggingface_hub import constants

    ref = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / "main"
    return ref.read_text().strip() if ref.exists() else None


def _remote_revision(name: str) -> str:
    from huggingface_hub import HfApi

    try:
        revision = HfApi().model_info(name, timeout=20).sha
    except Exception as error:
        raise ValueError(
            f"model {name!r} is not in mteb's registry and the hub did not give its revision "
            f"({type(error).__name__}): check the name, set `revision:`, or set `path:` for a "
            "local folder"
        ) from error
    if not revision:
        raise ValueError(f"model {name!r}: the hub gives no revision; set `revision:`")
    return revision


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _update_cache(home: Path, section: str, entries: Mapping[str, Any]) -> None:
    """Add entries to the cache; a folder that cannot be written keeps none."""
    with suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / (CACHE_FILE + ".lock"), timeout=60):
            cache = read_json(home / CACHE_FILE)
            cache.setdefault(section, {}).update(entries)
            write_json(home / CACHE_FILE, cache)
