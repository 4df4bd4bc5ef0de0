"""How texts reach a sentence-transformers model: batches of like token counts, one device or many.

sentence-transformers sorts what it is given by characters. A text's tokens per character differ
by language and kind (Arabic under an English tokenizer, code, numbers) by a factor of five, and a
batch pads to its longest: on a mix of English and Arabic more than half of all positions were
padding, by token counts a twentieth. So texts are tokenized once more, which costs some 1 % of a
small model's time on a CPU, and handed over batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol


class BatchedEncoder:
    """An mteb encoder, fed in batches where that is known to change nothing but the time."""

    def __init__(
        self, inner: EncoderProtocol, batch_size: int, devices: Sequence[str] = ()
    ) -> None:
        """Take a loaded encoder; processes for further devices start with the first texts.

        Args:
            inner: what mteb's loader gave.
            batch_size: texts per forward pass.
            devices: one process each when there are several; else the encoder's own device.

        Raises:
            ValueError: several devices for an encoder that is no sentence-transformers model.
        """
        self.inner = inner
        self._batch_size = batch_size
        self._devices = tuple(devices) if len(devices) > 1 else ()
        self._known = _wraps_sentence_transformers(inner)
        self._pool: Any = None
        if self._devices and not self._known:
            raise ValueError(
                f"devices {', '.join(self._devices)} for mteb's {type(inner).__name__}, which runs "
                "on one device: name one"
            )

    def encode(self, texts: list[str], **call: Any) -> Any:
        """Return the vectors of texts in their order, as the encoder gives them.

        Args:
            texts: any number.
            call: what mteb passes on beside the texts.
        """
        call |= {"batch_size": self._batch_size, "show_progress_bar": False}
        lengths = token_counts(self.inner, texts) if self._known else None
        if lengths is None:
            return self._encode_at_once(texts, call)
        order = np.argsort(-lengths, kind="stable")
        batches = [order[i : i + self._batch_size] for i in range(0, len(order), self._batch_size)]
        if self._devices:
            # Pieces of one batch, so that the processes pad as this one would.
            call |= {"pool": self._processes(), "chunk_size": self._batch_size}
            batches = [order]
        # The wrappers only look at the features and go through the batches; a Dataset per batch
        # would cost as much as a short batch itself.
        parts = [
            _to_numpy(self.inner.encode(_Loader([texts[i] for i in rows]), **call))
            for rows in batches
        ]
        return _in_order(parts, order)

    def close(self) -> None:
        """End the processes, if there are any."""
        if self._pool is not None:
            # They hold nothing to lose, and under a parent that ignores SIGTERM so do they:
            # sentence-transformers' polite way would wait for ever.
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
    """Return the tokens of each text, cut at the model's limit; None where a count buys nothing.

    A static model takes a mean over its tokens and pads nothing; other inputs than a transformer's
    have no tokenizer to ask.
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
    """One batch, as mteb's wrappers read a dataloader."""

    class Texts:
        """The features that the wrappers look for other modalities in."""

        features = ("text",)

    dataset = Texts()

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[dict[str, list[str]]]:
        yield {"text": self._texts}


def _wraps_sentence_transformers(inner: Any) -> bool:
    """Whether the encoder runs mteb's own code around a sentence-transformers model."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from sentence_transformers import SentenceTransformer

    own = (SentenceTransformerEncoderWrapper.encode, InstructSentenceTransformerModel.encode)
    return type(inner).encode in own and isinstance(inner.model, SentenceTransformer)


def _to_numpy(vectors: Any) -> Any:
    return vectors.detach().cpu().float().numpy() if hasattr(vectors, "detach") else vectors


def _in_order(parts: list[Any], order: np.ndarray) -> Any:
    """The rows back where their texts were; whatever does not fit goes on to be complained of."""
    shapes = {np.shape(part)[1:] for part in parts}
    if len(shapes) != 1 or sum(map(len, parts)) != len(order):
        return [row for part in parts for row in part]
    rows = np.concatenate(parts)
    out = np.empty_like(rows)
    out[order] = rows
    return out
