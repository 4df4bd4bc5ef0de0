"""Dagster's view of the keys: partition definitions, and mappings between the grains."""

from dataclasses import dataclass

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.keys import Grain, all_keys, upstream_keys

MODELS = "models"
"""Dynamic partitions: reference models of the suites in use."""

CANDIDATES = "candidates"
"""Dynamic partitions: models that only get lite scores. Kept apart from the reference models, so
that a new candidate makes no embedding or outcome partition."""


@dataclass(frozen=True)
class Partitions:
    """Partition definitions per grain; the model layer is shared by all suites."""

    by_grain: dict[Grain, dg.PartitionsDefinition]
    catalog: Catalog

    @classmethod
    def of(cls, catalog: Catalog) -> "Partitions":
        """Make the definitions for the suites, tasks and pools of a catalog.

        The catalog holds the suites in use alone: nobody asks for partitions of the others.
        """
        static = {
            grain: dg.StaticPartitionsDefinition(all_keys(grain, catalog))
            for grain in (Grain.SUITE, Grain.POOL_TASK, Grain.SUITE_TASK, Grain.SOURCE)
        }
        return cls(
            by_grain={
                **static,
                Grain.POOL_TASK_MODEL: dg.MultiPartitionsDefinition(
                    {
                        "model": dg.DynamicPartitionsDefinition(name=MODELS),
                        "pool_task": static[Grain.POOL_TASK],
                    }
                ),
                Grain.SUITE_CANDIDATE: dg.MultiPartitionsDefinition(
                    {
                        "candidate": dg.DynamicPartitionsDefinition(name=CANDIDATES),
                        "suite": static[Grain.SUITE],
                    }
                ),
            },
            catalog=catalog,
        )

    def mapping(self, upstream: Grain, grain: Grain) -> dg.PartitionMapping:
        """Return the built-in mapping between two grains (the daemon drops custom ones)."""
        if upstream is grain:
            return dg.IdentityPartitionMapping()
        if Grain.POOL_TASK_MODEL in (upstream, grain):
            return dg.MultiToSingleDimensionPartitionMapping("pool_task")
        if (upstream, grain) == (Grain.POOL_TASK, Grain.SUITE_CANDIDATE):
            # No built-in mapping knows the pools of a suite; the driver reads those alone.
            return dg.AllPartitionMapping()
        if grain is Grain.SUITE_CANDIDATE:
            return dg.MultiToSingleDimensionPartitionMapping("suite")
        downstream: dict[str, set[str]] = {}
        for key in all_keys(grain, self.catalog):
            for above in upstream_keys(upstream, grain, key, self.catalog):
                downstream.setdefault(above, set()).add(key)
        return dg.StaticPartitionMapping({k: sorted(v) for k, v in downstream.items()})
