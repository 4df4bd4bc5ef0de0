"""Batches of texts with similar token counts for sentence-transformers, on one device or several.

sentence-transformers sorts texts by characters and pads a batch to its longest text. The tokens
per character differ by a factor of five between languages and kinds of text (Arabic under an
English tokenizer, code, numbers). On a mix of English and Arabic more than half of all positions
were padding; with batches by token counts it was a twentieth. The additional tokenization costs
about 1 % of a small model's time on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from mteblite.vectors.vector_values import to_numpy

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol


class BatchedEncoder:
    """An mteb encoder that gets batches by token counts where these do not change its vectors."""

    def __init__(
        self, inner: EncoderProtocol, batch_size: int, devices: Sequence[str] = ()
    ) -> None:
        """Take a loaded encoder; several devices get one process each, with the first texts.

        Raises:
            ValueError: several devices for an encoder that is no sentence-transformers model.
        """
        self.inner = inner
        self._batch_size = batch_size
        self._devices = tuple(devices) if len(devices) > 1 else ()
        self._is_wrapper = _wraps_sentence_transformers(inner)
        self._pool: Any = None
        if self._devices and not self._is_wrapper:
            raise ValueError(
                f"devices {', '.join(self._devices)} for mteb's {type(inner).__name__}, which runs "
                "on one device: name one device"
            )

    def encode(self, texts: list[str], **call: Any) -> Any:
        """Return the vectors of texts, in their order; `call` holds mteb's other arguments."""
        call |= {"batch_size": self._batch_size, "show_progress_bar": False}
        lengths = token_counts(self.inner, texts) if self._is_wrapper else None
        if lengths is None:
            return self._encode_at_once(texts, call)
        order = np.argsort(-lengths, kind="stable")
        batches = [order[i : i + self._batch_size] for i in range(0, len(order), self._batch_size)]
        if self._devices:
            # A chunk is one batch, so that padding is the same as on one device.
            call |= {"pool": self._processes(), "chunk_size": self._batch_size}
            batches = [order]
        # The wrappers read only the features and the batches of a loader. To make a Dataset per
        # batch would cost as much as to encode a short batch.
        parts = [
            to_numpy(self.inner.encode(_Loader([texts[i] for i in rows]), **call))
            for rows in batches
        ]
        return _in_order(parts, order)

    def close(self) -> None:
        """End the processes of several devices."""
        if self._pool is not None:
            # sentence-transformers sends SIGTERM and waits. Processes of a parent that ignores
            # SIGTERM ignore it, too. They hold no data, so it is safe to kill them.
            for process in self._pool["processes"]:
                process.kill()
            self.inner.model.stop_multi_process_pool(self._pool)
            self._pool = None

    def _encode_at_once(self, texts: list[str], call: dict[str, Any]) -> Any:
        from datasets import Dataset
        from torch.utils.data import DataLoader

        if self._devices:
            call["pool"] = self._processes()
        inputs = DataLoader(Dataset.from_dict({"text": texts}), batch_size=self._batch_size)
        return self.inner.encode(inputs, **call)

    def _processes(self) -> Any:
        if self._pool is None:
            model = self.inner.model
            self._pool = model.start_multi_process_pool(list(self._devices))
        return self._pool


def token_counts(inner: Any, texts: list[str]) -> np.ndarray | None:
    """Return the tokens of each text (n,), cut at the model's limit; None for other models.

    A static model does not pad. Other input modules than a transformer have no tokenizer.
    """
    from sentence_transformers.base.modules import Transformer

    first = inner.model[0]
    tokenizer = getattr(first, "tokenizer", None)
    if not isinstance(first, Transformer) or not callable(tokenizer) or not texts:
        return None
    found = tokenizer(
        texts, return_attention_mask=False, return_token_type_ids=False, verbose=False
    )["input_ids"]
    limit = inner.model.max_seq_length
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(texts))
    return counts if limit is None else np.minimum(counts, int(limit))


class _Loader:
    """A dataloader of one batch, with the attributes that mteb's wrappers read."""

    dataset = SimpleNamespace(features=("text",))

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[dict[str, list[str]]]:
        yield {"text": self._texts}


def _wraps_sentence_transformers(inner: Any) -> bool:
    """Whether the encoder is mteb's own wrapper of a sentence-transformers model."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from sentence_transformers import SentenceTransformer

    own = (SentenceTransformerEncoderWrapper.encode, InstructSentenceTransformerModel.encode)
    return type(inner).encode in own and isinstance(inner.model, SentenceTransformer)


def _in_order(parts: list[Any], order: np.ndarray) -> Any:
    """The rows in the order of the texts; parts of unequal shapes are left to `check_vectors`."""
    shapes = {np.shape(part)[1:] for part in parts}
    if len(shapes) != 1 or sum(map(len, parts)) != len(order):
        return [row for part in parts for row in part]
    rows = np.concatenate(parts)
    out = np.empty_like(rows)
    out[order] = rows
    return out
