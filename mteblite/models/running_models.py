"""One interface to the models that encode texts: mteb's encoders and packaged models.

Weights are loaded when the first vector is missing. The parts of a vector's address (the literal
prompt, the model's own token limit) are stored beside the vectors. A run whose vectors are all
stored loads no model.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mteblite.files import read_json, write_json
from mteblite.models.devices import require_devices
from mteblite.vectors.address import (
    PROMPT_TYPES,
    Address,
    cap_below,
    literal_prompt,
    position_limit,
    set_token_cap,
    token_limit,
)

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models import EncoderProtocol

    from mteblite.models.encoders import EncodingSettings
    from mteblite.models.text_batches import BatchedEncoder

logger = logging.getLogger(__name__)


class RunningModel(Protocol):
    """The interface that `StoredEncoder` needs."""

    def address(self, task: TaskMetadata, prompt_type: str) -> Address:
        """Return the address of a task's vectors; loads the model where it is not yet known."""

    def encode(
        self, texts: list[str], task: TaskMetadata, prompt_type: str, split: str, hf_subset: str
    ) -> dict[str, Any]:
        """Return the vectors of the model and of its siblings, by checkpoint fingerprint."""

    def similarity(self, a: Any, b: Any, *, pairwise: bool) -> Any:
        """Return the similarities that mteb computes for this model."""

    @property
    def similarity_name(self) -> str:
        """The similarity's name; `cosine` for a model with its own similarity."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The token limit (None = none), and the configured one where positions are fewer."""

    def close(self) -> None:
        """Release the weights."""


class PackagedRunning:
    """A `package:` model; the vectors of siblings from the same forward pass are stored too."""

    def __init__(
        self, name: str, fingerprint: Callable[[str], str], max_tokens: int | None,
        keep: Collection[str] | None, unchanged: Callable[[], AbstractContextManager[None]],
        devices: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Take a packaged model; no weights are loaded.

        Args:
            name: its name in the catalog.
            fingerprint: returns the store's fingerprint of a catalog name.
            max_tokens: the suite's token cap.
            keep: catalog names of siblings to store, too; None = all siblings.
            unchanged: returns a context that refuses files which change while they are read.
            devices: devices of torch, of which the first is used; none = a GPU if there is one.
        """
        self.name = name
        self.max_tokens = max_tokens
        self.keep = None if keep is None else frozenset(keep)
        self._fingerprint = fingerprint
        self._unchanged = unchanged
        self._devices = tuple(devices[:1])
        self._encoder: Any = None
        self._fingerprints: dict[str, str] = {}

    def address(self, task: TaskMetadata, prompt_type: str) -> Address:
        """See `RunningModel.address`; it comes from the catalog without loading weights."""
        from mteblite.sample.models.catalog import packaged_model, prompt

        limit = packaged_model(self.name).source.max_tokens
        return Address(prompt(self.name, prompt_type), cap=cap_below(self.max_tokens, limit))

    def encode(
        self, texts: list[str], task: TaskMetadata, prompt_type: str, split: str, hf_subset: str
    ) -> dict[str, Any]:
        """See `RunningModel.encode`."""
        if self._encoder is None:
            from mteblite.sample.models.load import load_packaged

            require_devices(self._devices)
            device = next(iter(self._devices), None)
            with self._unchanged():
                encoder = load_packaged(self.name, self.max_tokens, device)
                # Of the files that were read: a later look could find those of another version.
                known = {n for kind in PROMPT_TYPES for n in encoder.siblings(kind)}
                self._fingerprints = {n: self._fingerprint(n) for n in sorted(known)}
            self._encoder = encoder
        siblings = set(self._encoder.siblings(prompt_type))
        wanted = None if self.keep is None else sorted(siblings & self.keep)
        vectors = self._encoder.encode_texts(texts, prompt_type, wanted=wanted)
        # The model itself comes first, so that it is stored even if storing a sibling fails.
        names = sorted(vectors, key=lambda name: (name != self.name, name))
        return {self._fingerprints[name]: vectors[name] for name in names}

    def similarity(self, a: Any, b: Any, *, pairwise: bool) -> Any:
        """See `RunningModel.similarity`: cosine."""
        from mteb.similarity_functions import cos_sim, pairwise_cos_sim

        return pairwise_cos_sim(a, b) if pairwise else cos_sim(a, b)

    @property
    def similarity_name(self) -> str:
        """See `RunningModel.similarity_name`."""
        return "cosine"

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """See `RunningModel.limits`."""
        from mteblite.sample.models.catalog import packaged_model

        return packaged_model(self.name).source.max_tokens, None

    def close(self) -> None:
        """See `RunningModel.close`."""
        self._encoder = None


class MtebRunning:
    """A hub model or a local folder, run through mteb's encoder protocol."""

    def __init__(
        self, fingerprint: str, load: Callable[[], EncoderProtocol], facts_file: Path,
        max_tokens: int | None, settings: EncodingSettings,
    ) -> None:  # fmt: skip
        """Take a model; no weights are loaded. The facts file keeps its prompts and limits."""
        self.fingerprint = fingerprint
        self.max_tokens = max_tokens
        self.settings = settings
        self._load = load
        self._facts_file = facts_file
        self._inner: EncoderProtocol | None = None
        self._batched: BatchedEncoder | None = None
        self._facts: dict[str, Any] | None = None

    def address(self, task: TaskMetadata, prompt_type: str) -> Address:
        """See `RunningModel.address`: the literal prompt that mteb would use."""
        key = f"{task.name}|{task.type}|{prompt_type}"
        facts = self._read_facts()
        if key not in facts["prompts"]:
            prompt, route = literal_prompt(self._running(), task, prompt_type)
            facts = self._read_facts()
            facts["prompts"][key] = [prompt, route]
            self._write_facts(facts)
        prompt, route = facts["prompts"][key]
        cap = cap_below(self.max_tokens, facts["limit"]) if facts["can_cap"] else None
        return Address(prompt, route, cap, self.settings.numerics)

    def encode(
        self, texts: list[str], task: TaskMetadata, prompt_type: str, split: str, hf_subset: str
    ) -> dict[str, Any]:
        """See `RunningModel.encode`."""
        from mteb.types import PromptType

        from mteblite.models.text_batches import BatchedEncoder

        if self._batched is None:
            inner = self._running()
            self._batched = BatchedEncoder(inner, self.settings.batch_size, self.settings.devices)
        vectors = self._batched.encode(
            texts,
            task_metadata=task,
            hf_split=split,
            hf_subset=hf_subset,
            prompt_type=PromptType(prompt_type) if prompt_type else None,
        )
        return {self.fingerprint: vectors}

    def similarity(self, a: Any, b: Any, *, pairwise: bool) -> Any:
        """See `RunningModel.similarity`; weights are loaded only for a model's own similarity."""
        name = self._read_facts()["similarity"]
        if name is None:
            inner = self._running()
            return inner.similarity_pairwise(a, b) if pairwise else inner.similarity(a, b)
        from sentence_transformers.util import SimilarityFunction

        if pairwise:
            return SimilarityFunction.to_similarity_pairwise_fn(name)(a, b)
        return SimilarityFunction.to_similarity_fn(name)(a, b)

    @property
    def similarity_name(self) -> str:
        """See `RunningModel.similarity_name`."""
        return str(self._read_facts()["similarity"] or "cosine")

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """See `RunningModel.limits`."""
        # Without facts nothing was loaded yet, and nothing is loaded for this.
        facts = self._facts or read_json(self._facts_file)
        return facts.get("limit"), facts.get("asked")

    def close(self) -> None:
        """See `RunningModel.close`."""
        if self._batched is not None:
            self._batched.close()
        self._inner = self._batched = None

    def _running(self) -> EncoderProtocol:
        if self._inner is None:
            inner = self._load()
            configured, can_cap = token_limit(inner)
            limit = configured
            positions = cap_below(position_limit(inner), configured)
            if positions is not None:
                set_token_cap(inner, positions)
                limit = positions
            asked = configured if limit != configured else None
            facts = {"prompts": {}, **read_json(self._facts_file), "limit": limit, "asked": asked}
            facts |= {"can_cap": can_cap, "similarity": _similarity_name(inner)}
            cap = cap_below(self.max_tokens, limit)
            if cap is not None and can_cap:
                set_token_cap(inner, cap)
            elif cap is not None:
                logger.warning("max_tokens=%d cannot be applied to %s", cap, type(inner).__name__)
            self._inner = inner
            self._write_facts(facts)
        return self._inner

    def _read_facts(self) -> dict[str, Any]:
        if self._facts is None:
            self._facts = read_json(self._facts_file) or None
        if self._facts is None:
            self._running()
        assert self._facts is not None
        return self._facts

    def _write_facts(self, facts: dict[str, Any]) -> None:
        # Two writers at once may lose an entry. It is then computed again.
        self._facts = facts
        write_json(self._facts_file, facts)


def facts_name(prompts: dict[str, str] | None, strategy: str | None) -> str:
    """Return the facts file's name, which depends on the libraries that choose the prompts."""
    parts = [version("mteb"), version("sentence-transformers"), json.dumps(prompts, sort_keys=True)]
    parts += [strategy] if strategy else []
    return f"encoder-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}.json"


def _similarity_name(inner: Any) -> str | None:
    from mteb.models import SentenceTransformerEncoderWrapper

    if type(inner).similarity is not SentenceTransformerEncoderWrapper.similarity:
        return None
    return str(inner.model.similarity_fn_name)
