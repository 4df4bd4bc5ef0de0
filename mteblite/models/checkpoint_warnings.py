"""What a model's scores silently depend on: assumptions, prompts that nothing uses, cut texts.

They are found from the files of the checkpoint and from stored facts, without loading weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from mteblite.models.checkpoint_files import read_config
from mteblite.models.model_identity import ModelIdentity
from mteblite.suites.suite_model import SuiteModel

_LIBRARY_KEYS = ("query", "document", "passage", "corpus")
"""Keys that sentence-transformers looks for itself, see `vectors.address.literal_prompt`."""


def model_warnings(
    spec: SuiteModel, identity: ModelIdentity, limit: int | None, asked: int | None
) -> list[str]:
    """Return sentences about a model that belong beside its scores; [] for most models.

    Args:
        spec: the model.
        identity: its identity.
        limit: its token limit; None = none.
        asked: the token limit of its configuration, where the model has fewer positions.
    """
    found = []
    if asked is not None:
        found.append(
            f"max_seq_length is {asked} and the model has {limit} positions: texts are cut at "
            f"{limit} tokens"
        )
    folder = _folder(spec, identity)
    settings: dict[str, Any] = {}
    if folder is not None:
        if not (folder / "modules.json").exists():
            tokens = "no token limit" if limit is None else f"{limit} tokens"
            found.append(f"no modules.json: mean pooling, {tokens} assumed")
        settings = read_config(folder / "config_sentence_transformers.json") or {}
    prompts = settings.get("prompts") or {} if spec.prompts is None else spec.prompts
    unused = [] if spec.strategy else unused_prompts(prompts, settings.get("default_prompt_name"))
    if unused:
        names = ", ".join(map(repr, unused))
        found.append(f"prompts {names} are used by no task: their keys are none that mteb looks up")
    return found


def unused_prompts(prompts: Mapping[str, str], default: str | None) -> list[str]:
    """Return the keys of prompts, other than empty ones, that no task of mteb can use.

    Used are task names, task types, prompt types, the first two joined to the last by a hyphen,
    and the default prompt.
    """
    if not any(prompts.values()):
        return []
    from mteb.abstasks.task_metadata import TaskType
    from mteb.get_tasks import get_task
    from mteb.types import PromptType

    known = {*get_args(TaskType), *_LIBRARY_KEYS, default}
    endings = tuple(f"-{kind.value}" for kind in PromptType)

    def is_used(key: str) -> bool:
        name = key.rsplit("-", 1)[0] if key.endswith(endings) else key
        if name in known:
            return True
        try:
            get_task(name)
        except KeyError:
            return False
        return True

    return [key for key, prompt in prompts.items() if prompt and not is_used(key)]


def _folder(spec: SuiteModel, identity: ModelIdentity) -> Path | None:
    """The folder of the checkpoint's files, where sentence-transformers' own loader reads them."""
    if spec.is_packaged or identity.source not in ("local", "hub"):
        return None
    if spec.path is not None:
        return Path(spec.path)
    if identity.source == "local":  # a loaded object
        return None
    from huggingface_hub import constants
    from mteb.models.model_implementations import MODEL_REGISTRY

    if spec.base in MODEL_REGISTRY:
        return None
    name = f"models--{spec.base.replace('/', '--')}"
    folder = Path(constants.HF_HUB_CACHE) / name / "snapshots" / identity.revision
    return folder if folder.is_dir() else None
