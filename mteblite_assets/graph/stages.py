"""The stages in flow order, importable without importing them."""

STAGE_NAMES = (
    "suites",
    "pools",
    "embeddings",
    "outcomes",
    "reference_scores",
    "item_parameters",
    "selections",
    "calibrations",
    "validation",
    "lite_scores",
    "dbt_reports",
)
