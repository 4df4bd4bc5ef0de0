select
    suite,
    protocol,
    variant,
    target,
    metric,
    {{ known('value') }} as value,
    {{ known('lower') }} as lower,
    {{ known('upper') }} as upper,
    n_models
from {{ source('validation', 'validation_metrics') }}
