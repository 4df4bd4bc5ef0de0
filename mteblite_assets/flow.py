"""All assets in flow order."""

from __future__ import annotations

from functools import cache

from mteblite_assets.calibrations.assets import calibrations
from mteblite_assets.embeddings.assets import embedding_stats
from mteblite_assets.graph.declaration import Declaration, in_flow_order
from mteblite_assets.item_parameters.assets import item_parameters
from mteblite_assets.lite_scores.assets import lite_scores, lite_suite
from mteblite_assets.lite_scores.releases.assets import releases
from mteblite_assets.outcomes.assets import item_outcomes, outcome_matrix
from mteblite_assets.pools.assets import pool_costs, pool_items
from mteblite_assets.reference_scores.assets import (
    candidate_full_scores,
    full_score_vectors,
    full_scores,
    kept_models,
    official_results,
    public_scores,
)
from mteblite_assets.reports import dbt_reports
from mteblite_assets.selections.assets import allocations, selected_items
from mteblite_assets.suites.assets import registered_models, resolved_tasks, roster, suite_tasks
from mteblite_assets.validation.assets import lomo_predictions, validation_metrics

ASSETS = in_flow_order(
    suite_tasks,
    roster,
    registered_models,
    resolved_tasks,
    pool_items,
    pool_costs,
    embedding_stats,
    item_outcomes,
    outcome_matrix,
    official_results,
    public_scores,
    full_scores,
    full_score_vectors,
    kept_models,
    candidate_full_scores,
    item_parameters,
    allocations,
    selected_items,
    calibrations,
    lomo_predictions,
    validation_metrics,
    lite_suite,
    lite_scores,
    releases,
    dbt_reports,
)
"""Each asset depends only on assets above it."""


@cache
def declarations() -> dict[str, Declaration]:
    """Return the assets by name, in flow order."""
    return {asset.name: asset for asset in ASSETS}
