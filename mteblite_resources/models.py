"""The registered models of one home: their identities and encoders."""

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
    """Encoders in memory; the least recently used one is closed when the cache is full."""

    def popitem(self) -> tuple[str, StoredEncoder]:
        """Close and remove the least recently used encoder."""
        key, encoder = super().popitem()
        encoder.close()
        return key, encoder


class Models:
    """Identities and encoders of one home's models, made on first use.

    Prompts depend on the metadata of tasks.
    """

    def __init__(self, home: Home, tasks: MtebTasks, encoding: EncodingSettings) -> None:
        self._home = home
        self._tasks = tasks
        self._encoding = encoding
        self._identities: dict[str, ModelIdentity] = {}
        self._encoders = _OpenEncoders(ENCODERS_KEPT)

    def numerics(self, model: SuiteModel) -> str:
        """Return precision and backend where they change a model's vectors, else ""."""
        return self._encoding.of_model(model).numerics

    def with_weights(self, model: SuiteModel) -> SuiteModel:
        """Return the model if it has weights.

        Raises:
            ValueError: it has none.
        """
        if not model.has_weights:
            raise ValueError(
                f"model {model.name!r} is a private checkpoint without weights in this home: add "
                f"them with `mteblite models add {model.name} --suite NAME --path FOLDER`"
            )
        return model

    def identify(self, model: SuiteModel) -> ModelIdentity:
        """Return the identity of a model now: its content or revision, never a path."""
        key = model.model_dump_json()
        if key not in self._identities:
            self._identities[key] = identify(
                self.with_weights(model), self._home.cache, self._encoding.backend
            )
        return self._identities[key]

    def encoder(
        self, model: SuiteModel, max_tokens: int | None, progress: Callable[[str], None]
    ) -> StoredEncoder:
        """Return an encoder that reads the vector store and encodes only missing texts."""
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
        """The vector store, migrated from the format of an earlier version."""
        migrate_vectors(self._home.vectors)
        return VectorStore(self._home.vectors)

    @cached_property
    def _siblings(self) -> list[str]:
        """Registered packaged models: a shared forward pass also stores their vectors."""
        names = {m.name for s in load_catalog(self._home).suites.values() for m in s.models}
        return sorted(n for n in names if n.startswith("package:"))
