"""Embeddings: all texts of a pool encoded by one model, each text once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mteblite.models.model_identity import ModelIdentity
from mteblite.pools.pool import Pool
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.pools.assets import stored_pool

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder


def model_settings(context: SettingsContext) -> Any:
    """Return the settings of partitions of a model: its fingerprint and numerics."""
    models, model = context.ports.models, context.model
    return models.identify(model).fingerprint, models.numerics(model)


def pool_and_encoder(work: Work) -> tuple[Pool, StoredEncoder]:
    """Return the pool and the encoder of a partition (pool_task, model)."""
    pool = stored_pool(work, work.rows("pools.shared_pool_stats"), work.key["pool_task"])
    return pool, work.ports.models.encoder(work.model, work.max_tokens, work.progress)


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["pool_items"],
    tables=["embeddings.embedding_stats"],
    code_version="1",
    settings=model_settings,
    kinds=("duckdb", "pytorch"),
    checks=[
        Check(
            "every_text_has_a_vector",
            "As many vectors as the pool has texts.",
            "SELECT e.pool_task, e.model, e.n_texts, p.n_texts AS pool_texts "
            "FROM embeddings.embedding_stats e JOIN pools.shared_pool_stats p USING (pool_task) "
            "WHERE e.n_texts <> p.n_texts",
        )
    ],
)
def embedding_stats(work: Work) -> Produced:
    """One row per (pool_task, model): numbers of texts and of encoded texts, and the time.

    Vectors are stored by content; a text that any task, suite or full run has encoded is not
    encoded again.
    """
    started = time.perf_counter()
    pool, encoder = pool_and_encoder(work)
    before = encoder.counts.encoded
    vectors = work.ports.models.embed(pool, encoder, work.ports.tasks.describe(work.entry))
    identity = work.ports.models.identify(work.model)
    encoded, seconds = encoder.counts.encoded - before, time.perf_counter() - started
    row = _row(identity, vectors, encoded, seconds)
    pool_hash = work.rows("pools.shared_pool_stats")["pool_hash"].iloc[0]
    version = f"{identity.fingerprint} {pool_hash} {work.ports.models.numerics(work.model)}"
    facts = {k: row[k] for k in ("n_texts", "n_encoded", "dim", "revision")}
    facts["texts_per_second"] = round(encoded / seconds, 1) if encoded else 0.0
    return Produced({"embeddings.embedding_stats": pd.DataFrame([row])}, facts, version=version)


def _row(
    identity: ModelIdentity, vectors: np.ndarray, encoded: int, seconds: float
) -> dict[str, Any]:
    return {
        "model_fingerprint": identity.fingerprint,
        "revision": identity.revision,
        "n_texts": len(vectors),
        "n_encoded": encoded,
        "dim": vectors.shape[1],
        "seconds": seconds,
    }
