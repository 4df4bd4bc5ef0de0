select
    suite,
    protocol,
    variant,
    target,
    metric,
    {{ known('value') }} as value,
    n_models
from {{ source('validation', 'validation_metrics') }}
