-- What the view is made of:
-- depends_on: {{ source('reference_scores', 'kept_models') }}
-- depends_on: {{ source('lite_scores', 'suite_scores') }}
-- depends_on: {{ source('embeddings', 'embedding_stats') }}
select
    suite,
    model,
    family,
    role,
    kept,
    source,
    revision,
    provenance
from {{ source('suites', 'suite_models') }}
