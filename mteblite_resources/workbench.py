"""The outside world as compute functions see it: tasks, encoders, results, files, warehouse.

Everything heavy (mteb, torch) is imported by the first call that needs it, so that planning and
the UI stay light.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.model_identity import ModelIdentity, identify
from mteblite.models.pool_vectors import pool_vectors
from mteblite.pools.pool import Pool
from mteblite.suites.catalog import Catalog, Suite, TaskEntry
from mteblite.suites.resolution import Resolution, TaskDifference, differences
from mteblite.suites.suite_model import SuiteModel
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.tasks.resolving import resolve_tasks
from mteblite.vectors.store import VectorStore
from mteblite_resources.artifacts import Artifacts, remember
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.frozen_tasks import recall_resolution, remember_resolution
from mteblite_resources.home import Home
from mteblite_resources.release_making import Releases
from mteblite_resources.results_source import FullScore, QuarantinedScore
from mteblite_resources.score_sources import ScoreSources
from mteblite_resources.vector_migration import migrate_vectors
from mteblite_resources.warehouse import Warehouse, replace_partition

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder

ENCODERS_KEPT = 2
TASKS_KEPT = 12


class Workbench:
    """One home and the tools to work on it."""

    def __init__(
        self,
        home: Home,
        tasks: MtebTasks | None = None,
        encoding: EncodingSettings | None = None,
        official: Path | None = None,
    ) -> None:
        """Set up; nothing is loaded yet.

        Args:
            home: where all state lies.
            tasks: the source of tasks.
            encoding: batch size, device, precision.
            official: Parquet table or folder of official results, for the source `official`.
        """
        self.home = home
        self.tasks = tasks or MtebTasks()
        self.encoding = encoding or EncodingSettings()
        self.official = official
        self.warehouse = Warehouse(home.writer, home.snapshot)
        self.artifacts = Artifacts(home)
        self.releases = Releases(self)
        self._identities: dict[str, ModelIdentity] = {}
        self._encoders: OrderedDict[str, StoredEncoder] = OrderedDict()
        self._loaded: OrderedDict[TaskDescription, Any] = OrderedDict()

    @property
    def mteb_version(self) -> str:
        """Installed version of mteb."""
        return self.tasks.mteb_version()

    @property
    def numerics(self) -> str:
        """Precision and backend of encoding where they change vectors, else ""."""
        return self.encoding.numerics

    def catalog(self) -> Catalog:
        """Read suites and registered models as they are now."""
        return load_catalog(self.home)

    # --- tasks ---------------------------------------------------------------------------

    def resolve(self, suite: Suite, *, refresh: bool = False) -> Suite:
        """Return the suite with every task resolved; asks mteb once and freezes the answer.

        Args:
            suite: the suite.
            refresh: ask the installed mteb about every task again and take its answer.

        Raises:
            ValueError: a task, subset, split or benchmark that there is not; names file and key.
        """
        if suite.resolved and not refresh:
            return suite
        known = Resolution() if refresh else recall_resolution(self.home, suite.file)
        found = resolve_tasks(suite.file, suite.origin, self.tasks, known)
        remember_resolution(self.home, suite.file, found, whole=refresh)
        return self.catalog().suite(suite.name)

    def mteb_differences(self, suite: Suite) -> list[TaskDifference]:
        """Return how the installed mteb's tasks differ from those that were frozen.

        Asks mteb only where another version of it was asked when they were frozen.
        """
        known = recall_resolution(self.home, suite.file)
        if all(t.mteb_version == self.mteb_version for t in known.tasks.values()):
            return []
        now = resolve_tasks(suite.file, suite.origin, self.tasks, Resolution(), tolerant=True)
        only = suite.file.only
        return [d for d in differences(known, now) if only is None or d.task in only]

    def describe(self, entry: TaskEntry) -> TaskDescription:
        """Return what a suite task resolved to."""
        if entry.description is not None:
            return entry.description
        suite = self.catalog().suite(entry.suite)
        description = self.resolve(suite).task(entry.task).description
        if description is None:
            raise ValueError(f"{entry.suite_task} could not be resolved")
        return description

    def loaded_task(self, description: TaskDescription) -> Any:
        """Return mteb's task object with its data, kept for the next model.

        Its random generators are as after loading: a run of mteb moves them on, and the next
        model would meet other samples (clustering draws its documents and bootstraps from them).
        """

        def load() -> Any:
            task = self.tasks.loaded_task(description)
            return task, copy.deepcopy((task.rng_state, task.np_rng))

        task, generators = remember(self._loaded, description, load, TASKS_KEPT)
        task.rng_state, task.np_rng = copy.deepcopy(generators)
        return task

    # --- models --------------------------------------------------------------------------

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
            self._identities[key] = identify(self.with_weights(model), self.home.cache)
        return self._identities[key]

    def encoder(
        self, model: SuiteModel, max_tokens: int | None, progress: Callable[[str], None]
    ) -> StoredEncoder:
        """Return a model that answers from the store and encodes what is missing."""
        key = f"{model.model_dump_json()} {max_tokens}"
        return remember(
            self._encoders,
            key,
            lambda: open_encoder(
                self.with_weights(model),
                self.identify(model),
                self.store,
                max_tokens,
                home=self.home.cache,
                settings=self.encoding,
                keep=self._siblings,
                progress=lambda done, total: progress(f"encoded {done} of {total} texts"),
            ),
            ENCODERS_KEPT,
            drop=lambda encoder: encoder.close(),
        )

    @cached_property
    def store(self) -> VectorStore:
        """The embedding store; one of an earlier version is brought to this version's form."""
        migrate_vectors(self.home.vectors)
        return VectorStore(self.home.vectors)

    @cached_property
    def _siblings(self) -> list[str]:
        """Registered packaged models: their vectors are kept when one forward pass gives them."""
        names = {m.name for suite in self.catalog().suites.values() for m in suite.models}
        return sorted(n for n in names if n.startswith("package:"))

    def embed(self, pool: Pool, encoder: StoredEncoder, description: TaskDescription) -> np.ndarray:
        """Return the vectors (n_texts, dim) of a pool's texts, in their order."""
        return pool_vectors(pool, encoder, self.tasks.task(description).metadata, description)

    def sync_models(self) -> None:
        """Write who is registered now to `suites.registered_models`."""
        suites = self.catalog().suites
        with self.warehouse.session() as connection:
            # Of a suite whose file is gone nothing shows any more; its rows stay, should it return.
            connection.execute(
                "DELETE FROM suites.registered_models WHERE NOT list_contains(?, suite)",
                [list(suites)],
            )
            for name, suite in suites.items():
                rows = [
                    {"model": m.name, "family": m.family, "role": m.role,
                     "source": _source_of(m), "provenance": m.provenance}
                    for m in suite.models
                ]  # fmt: skip
                columns = ["model", "family", "role", "source", "provenance"]
                frame = pd.DataFrame(rows, columns=columns)
                replace_partition(connection, "suites.registered_models", {"suite": name}, frame)

    # --- full scores ---------------------------------------------------------------------

    @cached_property
    def score_sources(self) -> ScoreSources:
        """Where full scores come from: own runs, own result files, official results."""
        return ScoreSources(self.home, self.warehouse, self.official)

    def full_score(
        self,
        entry: TaskEntry,
        model: SuiteModel,
        max_tokens: int | None,
        order: Sequence[str],
        progress: Callable[[str], None],
        public: pd.DataFrame | None = None,
    ) -> FullScore | None:
        """Return a full score, the first source wins; `run` runs mteb where it has not yet.

        Args:
            entry: the task.
            model: the model.
            max_tokens: token cap of its own runs.
            order: sources; the first that has a score wins.
            progress: told what takes long.
            public: official scores of public models on the task; None = those in the warehouse.

        Raises:
            QuarantinedScore: there is an official score alone, and it is refused; says why.
            RefusedScore: only unusable scores were found; says why.
            ValueError: the only source is one that is not set.
        """
        description = self.describe(entry)
        order = self.score_sources.usable(order, of_mteb=description.source == "mteb")
        deviation = self.with_weights(model).deviation
        chain = self.score_sources.chain(order, description, deviation, public)
        encoder = self.encoder(model, max_tokens, progress)
        revision = encoder.result_revision
        try:
            score = chain.full_score(model.name, revision, description)
        except QuarantinedScore:
            if "run" not in order:
                raise
            score = None
        if score is not None or "run" not in order:
            return score
        from mteblite_resources.full_runs import run_full

        progress("running mteb on the full task")
        run_full(self.loaded_task(description), encoder, self.home.results)
        return chain.full_score(model.name, revision, description)


def _source_of(model: SuiteModel) -> str:
    if not model.has_weights:
        return "absent"
    if model.name.startswith("package:"):
        return "package"
    return "local" if model.path else "hub"
