"""An mteb encoder that reads from the vector store and encodes only missing texts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mteblite.models.checkpoint_warnings import model_warnings
from mteblite.models.loaded_tensors import ModelError, first_line
from mteblite.models.model_identity import ModelIdentity, result_revision
from mteblite.models.running_models import RunningModel
from mteblite.suites.suite_model import SuiteModel, mteb_name
from mteblite.vectors.address import PROMPT_TYPES
from mteblite.vectors.store import DamagedShardError, VectorStore
from mteblite.vectors.vector_values import check_vectors, derive_variant

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models.model_meta import ModelMeta
    from torch.utils.data import DataLoader

    from mteblite.models.encoders import EncodingSettings

logger = logging.getLogger(__name__)

# A killed run loses at most this many seconds of encoding.
_FLUSH_SECONDS = 10.0
_FLUSH_TEXTS = 32768
_READS = 3


@dataclass
class TextCounts:
    """Numbers of distinct texts so far: found in the store, and encoded."""

    found: int = 0
    encoded: int = 0


class StoredEncoder:
    """A model whose vectors are stored; implements mteb's EncoderProtocol for text.

    mteb's full runs and the stages (`vectors`) share the stored vectors. Texts are encoded in a
    fixed order and in fixed chunks, so that an interrupted and continued run stores the same bytes.
    A retrieval document is its title and text, joined by mteb's dataloader.
    """

    def __init__(
        self,
        spec: SuiteModel,
        identity: ModelIdentity,
        store: VectorStore,
        model: RunningModel,
        settings: EncodingSettings,
        *,
        max_tokens: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Combine a model and a store; see `encoders.open_encoder` for the arguments."""
        self.spec = spec
        self.identity = identity
        self.settings = settings
        self.counts = TextCounts()
        self.result_revision = result_revision(spec, identity, max_tokens, settings.numerics)
        self._store = store
        self._model = model
        self._progress = progress

    def vectors(
        self,
        texts: Sequence[str],
        task_metadata: TaskMetadata,
        prompt_type: str | None = None,
        *,
        hf_split: str = "test",
        hf_subset: str = "default",
    ) -> np.ndarray:
        """Return the vectors of texts, (n, dim) float32, in order; encodes missing ones.

        Args:
            texts: any number, repeats allowed.
            task_metadata: mteb's metadata of the task, which determines the prompt.
            prompt_type: `query`, `document`, or None or "" for neither.
            hf_split: for encoders that use it; not part of the address.
            hf_subset: likewise.

        Raises:
            ValueError: a text is not a string, or the encoder does not return one finite vector
                per text; names model, task, shapes and the first bad text.
        """
        kind = str(getattr(prompt_type, "value", prompt_type) or "")
        if kind not in PROMPT_TYPES:
            raise ValueError(f"prompt type {kind!r}; allowed: query, document or none")
        bad = next((i for i, t in enumerate(texts) if not isinstance(t, str)), None)
        if bad is not None:
            raise ValueError(f"{task_metadata.name}: text {bad} is {texts[bad]!r}, not a string")
        rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(rows)
        prompt_fp = self._model.address(task_metadata, kind).fingerprint()
        call = _Call(task_metadata, kind, hf_split, hf_subset)
        stored = self._stored(distinct, prompt_fp, call)
        out = derive_variant(stored, self.spec)
        if len(distinct) == len(texts):
            return out
        return out[np.fromiter((rows[t] for t in texts), dtype=np.int64, count=len(texts))]

    def encode(
        self,
        inputs: DataLoader[Any],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> np.ndarray:
        """Return the vectors of a dataloader's texts, for mteb's EncoderProtocol.

        Raises:
            ValueError: see `vectors`; or the inputs are not text.
        """
        texts = _batch_texts(inputs, self.spec.name, task_metadata.name)
        return self.vectors(
            texts, task_metadata, prompt_type, hf_split=hf_split, hf_subset=hf_subset
        )

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return all similarities, by mteb's function for the inner model."""
        return self._model.similarity(embeddings1, embeddings2, pairwise=False)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the similarities of corresponding rows."""
        return self._model.similarity(embeddings1, embeddings2, pairwise=True)

    @property
    def similarity_name(self) -> str:
        """How mteb compares this model's vectors: `cosine`, `dot`, `euclidean` or `manhattan`."""
        return self._model.similarity_name

    @property
    def warnings(self) -> list[str]:
        """What the vectors silently depend on, see `model_warnings`; loads no weights twice."""
        return model_warnings(self.spec, self.identity, *self._model.limits)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """Metadata for mteb, under this model's own name and result revision."""
        from mteb.models.model_implementations import MODEL_REGISTRY
        from mteb.models.model_meta import ModelMeta

        known = self.identity.source == "hub" and MODEL_REGISTRY.get(self.spec.base)
        meta = known or ModelMeta.create_empty()
        own = {"name": mteb_name(self.spec.name), "revision": self.result_revision}
        return meta.model_copy(update=own)

    def close(self) -> None:
        """Release the weights; they are loaded again when needed."""
        self._model.close()

    def _stored(self, texts: list[str], prompt_fp: str, call: _Call) -> np.ndarray:
        base = self.identity.base_fingerprint
        for _ in range(_READS):
            located = self._store.locate(base, prompt_fp, texts)
            missing = located.absent
            self.counts.found += len(texts) - len(missing)
            if len(missing):
                self._encode_missing([texts[i] for i in missing], prompt_fp, call)
            try:
                known = None if len(missing) else located
                return self._store.get(base, prompt_fp, texts, known)
            except DamagedShardError as error:
                logger.warning("%s (model %s)", error, self.spec.name)
                self.counts.found -= len(texts) - len(missing)
        raise ValueError(
            f"{self.spec.name}: stored vectors were damaged {_READS} times in a row: "
            "check the disk that holds the vector store"
        )

    def _encode_missing(self, texts: list[str], prompt_fp: str, call: _Call) -> None:
        """Encode the longest first, so that a batch has little padding; ties by text."""
        texts = sorted(texts, key=lambda t: (-len(t), t))
        size = self.settings.chunk_size
        pending: list[tuple[list[str], dict[str, np.ndarray]]] = []
        flushed = time.monotonic()
        try:
            for start in range(0, len(texts), size):
                chunk = texts[start : start + size]
                pending.append((chunk, self._encode_chunk(chunk, call)))
                late = time.monotonic() - flushed > _FLUSH_SECONDS
                if late or len(pending) * size >= _FLUSH_TEXTS:
                    self._flush(pending, prompt_fp)
                    pending, flushed = [], time.monotonic()
                if self._progress is not None:
                    self._progress(start + len(chunk), len(texts))
        finally:
            # Vectors encoded before an error or an interruption are stored too.
            if pending:
                self._flush(pending, prompt_fp)

    def _encode_chunk(self, texts: list[str], call: _Call) -> dict[str, np.ndarray]:
        label = f"model {self.spec.name}, task {call.task.name}"
        try:
            encoded = self._model.encode(
                texts, call.task, call.prompt_type, call.split, call.subset
            )
        except ModelError:
            raise
        except Exception as error:
            limit = self._model.limits[0]
            tokens = "" if limit is None else f"; texts are cut at {limit} tokens"
            raise ModelError(
                f"{label}: the {len(texts)} texts from {texts[0][:80]!r} on cannot be encoded "
                f"({type(error).__name__}: {first_line(error)}){tokens}"
            ) from error
        checked = {fp: check_vectors(v, texts, label) for fp, v in encoded.items()}
        self.counts.encoded += len(texts)
        return checked

    def _flush(
        self, pending: list[tuple[list[str], dict[str, np.ndarray]]], prompt_fp: str
    ) -> None:
        texts = [text for chunk, _ in pending for text in chunk]
        for fingerprint in pending[0][1]:
            parts = [vectors[fingerprint] for _, vectors in pending]
            if len({part.shape[1] for part in parts}) > 1:
                raise ValueError(
                    f"model {self.spec.name} returned vectors of widths "
                    f"{sorted({part.shape[1] for part in parts})}; expected one width"
                )
            self._store.put(fingerprint, prompt_fp, texts, np.concatenate(parts))


@dataclass(frozen=True)
class _Call:
    """The arguments that mteb passes to an encoder beside the texts."""

    task: TaskMetadata
    prompt_type: str
    split: str
    subset: str


def _batch_texts(inputs: DataLoader[Any], model: str, task: str) -> list[str]:
    """The texts of all batches; a sequential loader's are read from the column at once."""
    from torch.utils.data import SequentialSampler

    dataset = inputs.dataset
    columns = getattr(dataset, "column_names", None) or []
    if others := sorted({"image", "audio", "video"} & set(columns)):
        raise ValueError(f"{task} has {', '.join(others)} inputs; {model} encodes text only")
    if "text" in columns and isinstance(inputs.sampler, SequentialSampler):
        return list(dataset["text"])
    return [text for batch in inputs for text in batch["text"]]
