"""The modules of a checkpoint by its files: which kind of model it is, and what each needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mteblite.models.checkpoint_files import read_config

_ONE_VECTOR = "only models that give one vector per text (SentenceTransformer) can be run"
_TOKEN_MODULES = frozenset({"Transformer", "Dense", "Normalize", "LayerNorm", "Dropout"})
"""Modules that keep one vector per token, or that only change vectors."""
_NO_FILES = frozenset({"Normalize", "Transformer"})
"""Modules without a folder of their own, and those whose files are checked one by one."""
_WITH_WEIGHTS = frozenset(
    {"Dense", "LayerNorm", "StaticEmbedding", "WordEmbeddings", "CNN", "LSTM"}
)
_HEADS = {
    "SequenceClassification": "cross-encoder or text classifier",
    "TokenClassification": "token classifier",
    "QuestionAnswering": "question answering model",
    "MultipleChoice": "multiple choice model",
    "MaskedLM": "masked language model, as SPLADE is",
    "CausalLM": "language model",
    "ConditionalGeneration": "text generation model",
}
_HEAD = re.compile(r"(?:For(?P<head>[A-Z]\w+)|LMHeadModel|DoubleHeadsModel)$")


@dataclass(frozen=True)
class Module:
    """A module of a checkpoint.

    Attributes:
        type: its class as modules.json names it; "" for the transformer of a folder without one.
        folder: where its files are.
        name: its folder as modules.json names it.
    """

    type: str
    folder: Path
    name: str = ""

    @property
    def kind(self) -> str:
        """Name of the class."""
        return self.type.rsplit(".", 1)[-1] or "Transformer"

    @property
    def has_weights(self) -> bool:
        """Whether the module is a small one with weights of its own."""
        return self.kind in _WITH_WEIGHTS


def read_modules(folder: Path, label: str) -> list[Module]:
    """Return the modules of a checkpoint, those of routes included.

    Raises:
        ValueError: modules.json or a router's configuration cannot be read or has another form.
    """
    entries = read_config(folder / "modules.json", label)
    if entries is None:
        return [Module("", folder)]
    try:
        found = [Module(str(e["type"]), folder / e["path"], str(e["path"])) for e in entries]
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"{label}{folder / 'modules.json'} is no list of modules with `type` and `path`: "
            "save the model again"
        ) from error
    for router in [m for m in found if m.kind in ("Router", "Asym")]:
        config = read_config(router.folder / "router_config.json", label) or {}
        found += [
            Module(str(kind), router.folder / name, str(name))
            for name, kind in dict(config.get("types", {})).items()
        ]
    return found


def check_kind(folder: Path, modules: list[Module], label: str) -> None:
    """Refuse a model that does not give one vector per text.

    It is decided from the model type, the modules, and, without modules, the architecture.

    Raises:
        ValueError: names the kind that was found, and the file that says so.
    """
    settings = read_config(folder / "config_sentence_transformers.json", label) or {}
    kind = settings.get("model_type")
    if kind not in (None, "SentenceTransformer"):
        raise ValueError(f"{label}{folder} is a {kind}; {_ONE_VECTOR}")
    if settings.get("similarity_fn_name") == "MaxSim" or (folder / "artifact.metadata").exists():
        raise ValueError(f"{label}{folder} is a multi-vector model (ColBERT); {_ONE_VECTOR}")
    if not modules[0].type:
        _check_architecture(folder, label)
        return
    for module in modules:
        if "sparse_encoder" in module.type or "Splade" in module.kind:
            raise ValueError(
                f"{label}{folder} is a SparseEncoder ({module.type} in modules.json); {_ONE_VECTOR}"
            )
        if "multi_vector" in module.type or "pylate" in module.type.lower():
            raise ValueError(
                f"{label}{folder} is a multi-vector model ({module.type} in modules.json); "
                f"{_ONE_VECTOR}"
            )
    known = all(m.type.startswith("sentence_transformers.") for m in modules)
    if known and {m.kind for m in modules} <= _TOKEN_MODULES and not _pools_itself(modules[0]):
        raise ValueError(
            f"{label}{folder} has no pooling module in modules.json, so it gives one vector per "
            f"token, as ColBERT does; {_ONE_VECTOR}"
        )


def check_default_prompt(folder: Path, label: str) -> None:
    """Refuse a default prompt that is not among the prompts; no library loads such a model.

    Raises:
        ValueError: names the prompt, the file and the prompts that there are.
    """
    settings = read_config(folder / "config_sentence_transformers.json", label) or {}
    default, prompts = settings.get("default_prompt_name"), settings.get("prompts") or {}
    if default is not None and default not in prompts:
        raise ValueError(
            f"{label}{folder / 'config_sentence_transformers.json'}: default_prompt_name is "
            f"{default!r}, which is none of the prompts ({', '.join(prompts) or 'none'}): add it "
            "to `prompts`, or set default_prompt_name to null"
        )


def check_module_files(modules: list[Module], label: str) -> None:
    """Refuse a model where the folder of a module is missing.

    Raises:
        ValueError: names the folder.
    """
    for module in modules:
        if module.kind not in _NO_FILES and not module.folder.is_dir():
            raise ValueError(
                f"{label}modules.json names the folder {module.name!r} of {module.kind}, and "
                f"{module.folder} does not exist: copy it too"
            )
        if module.kind == "Pooling" and read_config(module.folder / "config.json", label) is None:
            raise ValueError(
                f"{label}{module.folder / 'config.json'} does not exist, which says how to pool: "
                "copy it too"
            )


def check_own_code(modules: list[Module], folder: Path, label: str, *, trusted: bool) -> None:
    """Refuse modules that are Python files of the checkpoint, unless its code is trusted.

    Raises:
        ValueError: names the file and the option.
    """
    own = [f"{m.type.split('.')[0]}.py" for m in modules if m.type]
    found = next((name for name in own if (folder / name).is_file()), None)
    if found and not trusted:
        raise ValueError(
            f"{label}{folder} needs its own Python code ({found}): read the code, then set "
            "`trust_remote_code: true` for this model"
        )


def _pools_itself(first: Module) -> bool:
    config = read_config(first.folder / "sentence_bert_config.json") or {}
    return "sentence_embedding" in str(config.get("module_output_name", ""))


def _check_architecture(folder: Path, label: str) -> None:
    config: Any = read_config(folder / "config.json", label) or {}
    for name in map(str, config.get("architectures") or []):
        match = _HEAD.search(name)
        colbert = "ColBERT" in name or "ColPali" in name
        if match is None and not colbert:
            continue
        head = "" if match is None else match["head"] or "CausalLM"
        kind = "multi-vector model" if colbert else _HEADS.get(head, "model of another task")
        raise ValueError(
            f"{label}{folder} is a {kind} ({name} in config.json); {_ONE_VECTOR}: to use its "
            "encoder, save it by SentenceTransformer with a pooling module"
        )
