"""Whether the weights that were loaded are all of a model's tensors, and all are the model's.

The libraries fill a missing tensor with random numbers and leave out one that they do not know.
Both give vectors, and scores, of another model.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

_NAMED = 3
# A pooler is trained or used by few models. Its absence, or its presence, is normal.
_POOLER = re.compile(r"(^|\.)pooler\.")
# Tensors of a head that the encoder does not use, where the checkpoint says that it has a head.
_HEAD = re.compile(
    r"(^|\.)(cls|lm_head|decoder|predictions|lm_predictions|mask_predictions|vocab_transform|"
    r"vocab_layer_norm|vocab_projector|generator_predictions|generator_lm_head|"
    r"discriminator_predictions|pred_layer|lm_loss|head)\."
)
_HAS_HEAD = re.compile(r"For(MaskedLM|CausalLM|PreTraining|ConditionalGeneration)$|LMHead")
# transformers' hook is a class attribute, so one load at a time.
_ONE_LOAD = threading.RLock()


class ModelError(ValueError):
    """A model cannot be run on any task; the message names it and the reason in one sentence."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, at most 300 characters."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]


@contextmanager
def whole_weights(name: str) -> Iterator[None]:
    """Collect transformers' reports on the models that are loaded inside, and judge them.

    It holds for whatever form and number of files the weights have, and costs nothing.

    Args:
        name: the model's name, for the message.

    Raises:
        ModelError: tensors of the model are missing in the weights, or tensors of the weights are
            used by no part of the model.
    """
    missing: set[str] = set()
    unused: set[str] = set()
    with _reports(missing, unused):
        yield
    if not missing and not unused:
        return
    parts = []
    if missing:
        parts.append(
            f"{_some(missing)} of the model are missing in its weights and would be random"
        )
    if unused:
        parts.append(f"{_some(unused)} of its weights are used by no part of the model")
    raise ModelError(
        f"model {name!r}: {', and '.join(parts)}: they were saved from another model, or only in "
        "part; save the model again with save_pretrained"
    )


@contextmanager
def _reports(missing: set[str], unused: set[str]) -> Iterator[None]:
    """Add the names of missing and unused tensors of every transformers model loaded inside."""
    from transformers import PreTrainedModel
    from transformers.utils import logging

    plain = PreTrainedModel.__dict__["from_pretrained"]
    # An adapter's report replaces that of its base, which this step makes.
    finish = PreTrainedModel.__dict__["_finalize_model_loading"]

    def from_pretrained(cls: Any, *args: Any, **options: Any) -> Any:
        wanted = options.pop("output_loading_info", False)
        model, report = plain.__get__(None, cls)(*args, output_loading_info=True, **options)
        heads = _HAS_HEAD.search(" ".join(getattr(model.config, "architectures", None) or []))
        missing.update(_not_normal(report["missing_keys"], heads=False))
        unused.update(_not_normal(report["unexpected_keys"], heads=bool(heads)))
        return (model, report) if wanted else model

    def finalize(model: Any, load_config: Any, loading_info: Any) -> Any:
        found = finish.__get__(None, type(model))(model, load_config, loading_info)
        missing.update(_not_normal(found.missing_keys, heads=False))
        return found

    # transformers prints a table of the same tensors.
    verbosity = logging.get_verbosity()
    with _ONE_LOAD:
        logging.set_verbosity_error()
        PreTrainedModel.from_pretrained = classmethod(from_pretrained)
        PreTrainedModel._finalize_model_loading = staticmethod(finalize)
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            PreTrainedModel.from_pretrained = plain
            PreTrainedModel._finalize_model_loading = finish


def _not_normal(names: Collection[str], *, heads: bool) -> set[str]:
    return {n for n in names if not _POOLER.search(n) and not (heads and _HEAD.search(n))}


def _some(names: Collection[str]) -> str:
    first = ", ".join(sorted(names)[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"{len(names)} tensors ({first})"
