select
    suite,
    model,
    family,
    role,
    kept,
    source,
    revision
from {{ source('suites', 'suite_models') }}
