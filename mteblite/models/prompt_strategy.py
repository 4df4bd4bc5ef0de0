"""Prompt strategies: use a model's prompts of single tasks, of categories, or none.

mteb looks prompts up from the most specific to the most general: task name, task type, prompt
type (`models/abs_encoder.py`: `get_prompt_name`, `AbsEncoder.get_instruction`). Reported scores
of instruction-tuned models differ by which of these prompts were defined. A strategy makes one
choice for all tasks. It changes the literal prompt, and so the address of the vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata

PROMPT_TYPES = ("query", "document", "passage")


def prompts_for(
    prompts: Mapping[str, str] | None, strategy: str, task_types: Collection[str]
) -> dict[str, str]:
    """Return the prompts that a strategy keeps.

    Args:
        prompts: by mteb's keys: a task name, a task type, `query`, `document`, or a task name or
            type joined to one of these by a hyphen.
        strategy: `task` keeps prompts of task names, `category` those of task types and prompt
            types, `none` keeps none.
        task_types: mteb's names of task types.
    """
    if strategy == "none" or not prompts:
        return {}
    general = {*task_types, *PROMPT_TYPES}

    def is_category(key: str) -> bool:
        base, _, kind = key.rpartition("-")
        return key in general or (kind in PROMPT_TYPES and base in general)

    return {k: p for k, p in prompts.items() if is_category(k) == (strategy == "category")}


def apply_strategy(inner: Any, strategy: str) -> None:
    """Restrict one of mteb's two sentence-transformers wrappers to a strategy's prompts.

    Args:
        inner: a `SentenceTransformerEncoderWrapper` or an `InstructSentenceTransformerModel`.
        strategy: `task`, `category` or `none`.
    """
    from mteb.abstasks.task_metadata import TaskType
    from mteb.models import SentenceTransformerEncoderWrapper

    types = get_args(TaskType)
    if isinstance(inner, SentenceTransformerEncoderWrapper):
        kept = prompts_for({**inner.model.prompts, **(inner.model_prompts or {})}, strategy, types)
        inner.model_prompts = dict(kept)
        # sentence-transformers uses these where mteb names no prompt.
        inner.model.prompts = dict(kept)
        if inner.model.default_prompt_name not in kept:
            inner.model.default_prompt_name = None
        return
    inner.prompts_dict = prompts_for(inner.prompts_dict, strategy, types)
    inner.model.prompts = {}
    inner.model.default_prompt_name = None
    if strategy == "none":
        # The template would add text to an empty instruction.
        inner.get_task_instruction = lambda task_metadata, prompt_type: ""
    elif strategy == "category":
        inner.get_instruction = _category_instruction(inner)
    else:
        from mteb.models.abs_encoder import PromptSource

        inner.prompt_priority = [PromptSource.CUSTOM_PROMPT, PromptSource.DEFAULT_TASK_PROMPT]


def _category_instruction(inner: Any) -> Callable[[TaskMetadata, Any], str]:
    """The model's prompt of the task type or prompt type, else mteb's prompt of the task type."""

    def instruction(task_metadata: TaskMetadata, prompt_type: Any) -> str:
        from mteb.abstasks.abstask import get_abstask_prompt

        kind = prompt_type.value if prompt_type else ""
        for key in (f"{task_metadata.type}-{kind}", task_metadata.type, kind):
            if key in inner.prompts_dict:
                return str(inner.prompts_dict[key])
        return str(get_abstask_prompt(task_metadata.name))

    return instruction
