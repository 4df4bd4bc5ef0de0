"""Run packaged models, and return the vectors of the model and of its siblings.

One forward pass of a parent gives all its variants of layers, pooling and dimensions. The caller
stores the vectors of all these siblings, so that the pass is not run again.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Protocol

import numpy as np

from mteblite.files import file_state
from mteblite.sample.models.catalog import (
    PACKAGED_MODELS,
    PackagedModel,
    VariantSettings,
    packaged_model,
    prompt,
    weight_files,
)
from mteblite.sample.models.parents import Parent
from mteblite.sample.models.vectors import finish


class Engine(Protocol):
    """The loaded weights of a parent."""

    def pooled(
        self, texts: list[str], variants: Collection[VariantSettings], max_tokens: int | None
    ) -> dict[VariantSettings, np.ndarray]:
        """Return (n, dim) pooled vectors for each of the variants, from one pass over the texts.

        The layers of each variant are a prefix of the longest. `vectors.finish` does the rest.
        """


class PackagedEncoder:
    """A packaged model, ready to encode."""

    def __init__(self, model: PackagedModel, engine: Engine, max_tokens: int | None) -> None:
        self.model = model
        self.max_tokens = max_tokens
        self._engine = engine

    def siblings(self, prompt_type: str) -> list[str]:
        """Return the names of the models of one pass for a prompt type, with this model."""
        own = prompt(self.model.name, prompt_type)
        return [
            other.name
            for other in PACKAGED_MODELS.values()
            if _pass(other) == _pass(self.model) and prompt(other.name, prompt_type) == own
        ]

    def encode_texts(
        self, texts: list[str], prompt_type: str, *, wanted: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return vectors of this model and of its siblings.

        Args:
            texts: texts without prompt; any order, repeats allowed.
            prompt_type: `query`, `document` or "".
            wanted: names to return besides this model; None = all siblings. Layers that none of
                them needs are not run.

        Returns:
            (n_texts, dim) float32 by catalog name, row i for `texts[i]`.

        Raises:
            ValueError: an unknown prompt type, or `wanted` names a model of another pass.
        """
        if prompt_type not in ("query", "document", ""):
            raise ValueError(f"prompt type {prompt_type!r}; expected 'query', 'document' or ''")
        siblings = self.siblings(prompt_type)
        names = siblings if wanted is None else sorted({self.model.name, *wanted})
        if others := sorted(set(names) - set(siblings)):
            raise ValueError(
                f"{', '.join(others)}: not from the same pass as {self.model.name}; "
                f"one pass gives {', '.join(siblings)}"
            )
        settings = {name: PACKAGED_MODELS[name].settings for name in names}
        before = prompt(self.model.name, prompt_type)
        inputs = [before + text for text in texts]
        pooled = self._engine.pooled(inputs, list(settings.values()), self.max_tokens)
        return {name: finish(pooled[setting], setting) for name, setting in settings.items()}


def load_packaged(
    name: str, max_tokens: int | None = None, device: str | None = None
) -> PackagedEncoder:
    """Return a packaged model; its weights are loaded once per process, and after a change.

    Args:
        name: name in the catalog, with or without `package:`.
        max_tokens: tokens per text, special tokens included; never above the model's own limit.
            None = that limit.
        device: a device of torch, for models that run on torch; None = a GPU when there is one.

    Raises:
        ValueError: no such model, its package is not installed, or the cap is below 3 tokens.
    """
    model = packaged_model(name)
    if max_tokens is not None and max_tokens < 3:
        raise ValueError(f"max_tokens={max_tokens}; expected at least 3: two are special tokens")
    limits = [limit for limit in (max_tokens, model.source.max_tokens) if limit is not None]
    states = tuple(file_state(file) for file in weight_files(model.name))
    return PackagedEncoder(model, _engine(model.source, device, states), min(limits, default=None))


def _pass(model: PackagedModel) -> tuple[object, ...]:
    """The key of a model's forward pass: models with equal keys share the pass."""
    layers = model.settings.layers
    # The first n layers are part of the pass through all layers. Other layers need another pass.
    is_prefix = layers is None or layers == tuple(range(len(layers)))
    return model.parent, None if is_prefix else layers, model.settings.denoise


@functools.lru_cache(maxsize=8)
def _engine(parent: Parent, device: str | None, _states: tuple[object, ...]) -> Engine:
    if parent.engine == "bert":
        from mteblite.sample.models.bert import BertEngine

        return BertEngine.load(parent, device)
    if parent.engine == "onnx":
        from mteblite.sample.models.onnx_engine import OnnxEngine

        return OnnxEngine(parent)
    if parent.engine == "use":
        from mteblite.sample.models.use_multilingual import UseEngine

        return UseEngine(parent)
    from mteblite.sample.models.static import StaticEngine

    return StaticEngine.load(parent)
