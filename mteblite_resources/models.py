"""The registered models of one home: which model a name stands for, and its encoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.model_identity import ModelIdentity, identify
from mteblite.models.pool_vectors import pool_vectors
from mteblite.pools.pool import Pool
from mteblite.suites.suite_model import SuiteModel
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.vectors.store import VectorStore
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.home import Home
from mteblite_resources.vector_migration import migrate_vectors

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder

ENCODERS_KEPT = 2


class _OpenEncoders(LRUCache[str, "StoredEncoder"]):
    """Encoders in memory; the least recently used one is closed when there is one too many."""

    def popitem(self) -> tuple[str, StoredEncoder]:
        """Close and remove the least recently used encoder."""
        key, encoder = super().popitem()
        encoder.close()
        return key, encoder


class Models:
    """Identities and encoders of one home's models; vectors come from its store."""

    def __init__(self, home: Home, tasks: MtebTasks, encoding: EncodingSettings) -> None:
        """Set up; nothing is loaded yet.

        Args:
            home: where vectors and caches lie.
            tasks: gives the metadata of tasks, which prompts depend on.
            encoding: batch size, device, precision.
        """
        self._home = home
        self._tasks = tasks
        self._encoding = encoding
        self._identities: dict[str, ModelIdentity] = {}
        self._encoders = _OpenEncoders(ENCODERS_KEPT)

    @property
    def numerics(self) -> str:
        """Precision and backend of encoding where they change vectors, else ""."""
        return self._encoding.numerics

    def with_weights(self, model: SuiteModel) -> SuiteModel:
        """Return a model whose weights are there to be loaded.

        Raises:
            ValueError: nobody gave this home the model's weights.
        """
        if not model.has_weights:
            raise ValueError(
                f"model {model.name!r} is a private checkpoint that is known by name alone: give "
                f"its weights with `mteblite models add {model.name} --suite NAME --path FOLDER`"
            )
        return model

    def identify(self, model: SuiteModel) -> ModelIdentity:
        """Return which model a name stands for now: content or revision, never a path."""
        key = model.model_dump_json()
        if key not in self._identities:
            self._identities[key] = identify(self.with_weights(model), self._home.cache)
        return self._identities[key]

    def encoder(
        self, model: SuiteModel, max_tokens: int | None, progress: Callable[[str], None]
    ) -> StoredEncoder:
        """Return a model that answers from the store and encodes what is missing."""
        key = f"{model.model_dump_json()} {max_tokens}"
        if key not in self._encoders:
            self._encoders[key] = open_encoder(
                self.with_weights(model),
                self.identify(model),
                self._store,
                max_tokens,
                home=self._home.cache,
                settings=self._encoding,
                keep=self._siblings,
                progress=lambda done, total: progress(f"encoded {done} of {total} texts"),
            )
        return self._encoders[key]

    def embed(self, pool: Pool, encoder: StoredEncoder, description: TaskDescription) -> np.ndarray:
        """Return the vectors (n_texts, dim) of a pool's texts, in their order."""
        return pool_vectors(pool, encoder, self._tasks.task(description).metadata, description)

    @cached_property
    def _store(self) -> VectorStore:
        """The vector store; one of an earlier version is brought to this version's form."""
        migrate_vectors(self._home.vectors)
        return VectorStore(self._home.vectors)

    @cached_property
    def _siblings(self) -> list[str]:
        """Registered packaged models: their vectors are kept when one forward pass gives them."""
        names = {m.name for s in load_catalog(self._home).suites.values() for m in s.models}
        return sorted(n for n in names if n.startswith("package:"))
