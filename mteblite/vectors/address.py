"""The address of a vector: the literal prompt that mteb would use, and the token cap."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata

PROMPT_TYPES = ("query", "document", "")

_POSITIONS = frozenset({"position_embeddings", "embed_positions", "wpe"})
"""Names of learned tables of absolute positions in transformers' models."""

_PROMPT_NAMES = {"query": ["query"], "document": ["document", "passage", "corpus"]}
"""Names under which sentence-transformers looks for a prompt, by prompt type."""


@dataclass(frozen=True)
class Address:
    """All that a text's vector depends on besides the checkpoint and the text.

    Attributes:
        prompt: literal text put before it.
        route: other input of the model: the prompt type where the model routes by it; task and
            prompt type where the encoder's own code picks the prompt; else "".
        cap: token cap, None where the model's own limit is lower.
        numerics: precision and backend, "" for the model's own.
    """

    prompt: str
    route: str = ""
    cap: int | None = None
    numerics: str = ""

    def fingerprint(self) -> str:
        """Return 16 hex digits."""
        facts = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def literal_prompt(inner: Any, task: TaskMetadata, prompt_type: str) -> tuple[str, str]:
    """Return the prompt that mteb's wrapper puts before a task's texts, and the route.

    Follows mteb's `SentenceTransformerEncoderWrapper.encode` and
    `InstructSentenceTransformerModel.encode`, including the prompts that sentence-transformers
    uses when mteb gives none. Any other encoder picks prompts in its own code. Its vectors are
    kept per task and prompt type, and no other task shares them.
    """
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from mteb.types import PromptType

    kind = PromptType(prompt_type) if prompt_type else None
    own_encode = type(inner).encode
    if own_encode is SentenceTransformerEncoderWrapper.encode:
        prompts = inner.model_prompts or {}
        prompt = prompts.get(inner.get_prompt_name(task, kind))
        route = prompt_type if _routes(inner.model) else ""
        return _or_default(inner.model, prompt, prompt_type), route
    if own_encode is InstructSentenceTransformerModel.encode:
        prompt = inner.get_task_instruction(task, kind)
        if prompt_type == "document" and not inner.apply_instruction_to_passages:
            prompt = None
        # This wrapper calls `encode`, never `encode_query` or `encode_document`.
        return _or_default(inner.model, prompt, ""), ""
    return "", f"{task.name}|{prompt_type}"


def token_limit(inner: Any) -> tuple[int | None, bool]:
    """Return an encoder's own token limit (None = none), and whether it can be lowered."""
    from sentence_transformers import SentenceTransformer

    model = getattr(inner, "model", None)
    if not isinstance(model, SentenceTransformer):
        return None, False
    limit = model.max_seq_length
    return (int(limit) if limit is not None and np.isfinite(limit) else None), True


def position_limit(inner: Any) -> int | None:
    """Return the number of tokens for which a transformer has positions; None = no such limit.

    Longer texts end in an error of torch. Relative and rotary positions have no limit.
    """
    from sentence_transformers import SentenceTransformer
    from torch import nn

    model = getattr(inner, "model", None)
    if not isinstance(model, SentenceTransformer) or type(model[0]).__name__ != "Transformer":
        return None
    sizes = []
    for name, module in model[0].named_modules():
        if name.rpartition(".")[2] in _POSITIONS and isinstance(module, nn.Embedding):
            # RoBERTa and BART number positions from behind the padding's.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            sizes.append(module.num_embeddings - getattr(module, "offset", first))
    return min(sizes, default=None)


def set_token_cap(inner: Any, cap: int) -> None:
    """Lower the token limit of a sentence-transformers model."""
    first = inner.model[0]
    if type(first).__name__ == "StaticEmbedding":
        # A static model has no limit, but its tokenizer can truncate.
        first.tokenizer.enable_truncation(cap)
    else:
        inner.model.max_seq_length = cap


def cap_below(max_tokens: int | None, limit: int | None) -> int | None:
    """Return the token cap where it lies below the model's own limit, else None."""
    return max_tokens if max_tokens is not None and (limit is None or max_tokens < limit) else None


def _or_default(model: Any, prompt: str | None, prompt_type: str) -> str:
    """The prompt that sentence-transformers uses where mteb passes None."""
    if prompt is not None:
        return prompt
    names = _PROMPT_NAMES.get(prompt_type, [])
    name = next((n for n in names if n in model.prompts), model.default_prompt_name)
    return model.prompts.get(name) or ""


def _routes(model: Any) -> bool:
    """Whether the model encodes queries and documents by different modules."""
    names = {type(module).__name__ for module in model}
    return bool(names & {"Router", "Asym"}) or "task" in model.get_model_kwargs()
