select
    suite,
    protocol,
    variant,
    target,
    metric,
    value,
    n_models
from {{ source('validation', 'validation_metrics') }}
