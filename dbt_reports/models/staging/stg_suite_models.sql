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
