"""Loaded models as encoders: sentence-transformers, encoders of mteb, any object with `encode`.

The weights of a loaded model can change at any time, so its vectors are kept for one call only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from mteblite.models.encoders import EncodingSettings
from mteblite.models.model_identity import ModelIdentity
from mteblite.models.running_models import MtebRunning
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore

FINGERPRINT = "loaded-model"


@contextmanager
def object_encoder(
    model: Any,
    store: VectorStore,
    max_tokens: int | None,
    settings: EncodingSettings,
    progress: Callable[[int, int], None],
) -> Iterator[StoredEncoder]:
    """Yield a loaded model as an encoder, and restore the model's settings at the end.

    Args:
        model: a SentenceTransformer, an encoder of mteb, or an object whose `encode(texts)` returns
            one vector per text.
        store: an empty store.
        max_tokens: caps the model's own token limit, where it is a SentenceTransformer.
        settings: batch and chunk size. Device, precision and backend are the model's own.
        progress: called with (encoded, to encode) after every chunk.

    Raises:
        ValueError: the object has no `encode`.
    """
    if not callable(getattr(model, "encode", None)):
        raise ValueError(
            f"{type(model).__name__} has no encode(): expected a model name, the folder of a "
            "checkpoint, a SentenceTransformer, an encoder of mteb, or an object whose "
            "encode(texts) returns one vector per text"
        )
    inner = _as_mteb(model)
    spec = SuiteModel.named(_name(model))
    identity = ModelIdentity(FINGERPRINT, FINGERPRINT, "local", FINGERPRINT)
    own = EncodingSettings(batch_size=settings.batch_size, chunk_size=settings.chunk_size)
    facts = store.root / FINGERPRINT / "encoder.json"
    running = MtebRunning(FINGERPRINT, lambda: inner, facts, max_tokens, own)
    encoder = StoredEncoder(
        spec, identity, store, running, own, max_tokens=max_tokens, progress=progress
    )
    with _restored(inner), closing(encoder):
        yield encoder


@contextmanager
def _restored(inner: Any) -> Iterator[None]:
    """Restore the token limit and the training mode of a sentence-transformers model."""
    from sentence_transformers import SentenceTransformer

    model = getattr(inner, "model", None)
    if not isinstance(model, SentenceTransformer):
        yield
        return
    limit, training = model.max_seq_length, model.training
    truncation = getattr(getattr(model[0], "tokenizer", None), "truncation", None)
    try:
        yield
    finally:
        model.train(training)
        if type(model[0]).__name__ != "StaticEmbedding":
            model.max_seq_length = limit
        elif truncation is None:
            model[0].tokenizer.no_truncation()
        else:
            model[0].tokenizer.enable_truncation(**truncation)


def _as_mteb(model: Any) -> Any:
    from mteb.models import EncoderProtocol, SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    if isinstance(model, SentenceTransformer):
        return SentenceTransformerEncoderWrapper(model)
    return model if isinstance(model, EncoderProtocol) else _PlainEncoder(model)


def _name(model: Any) -> str:
    """The model's own name where it has an allowed one, else the name of its class."""
    card = getattr(model, "model_card_data", None)
    meta = getattr(model, "mteb_model_meta", None)
    for name in filter(None, (getattr(meta, "name", None), getattr(card, "model_id", None))):
        with suppress(ValueError):
            return SuiteModel.named(str(name)).name
    return type(model).__name__


class _PlainEncoder:
    """An mteb encoder around an object whose `encode` takes a list of texts; no prompts."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def encode(self, inputs: Any, **_: Any) -> Any:
        return self._model.encode([text for batch in inputs for text in batch["text"]])

    def similarity(self, a: Any, b: Any) -> Any:
        from mteb.similarity_functions import cos_sim

        return cos_sim(a, b)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(a, b)
