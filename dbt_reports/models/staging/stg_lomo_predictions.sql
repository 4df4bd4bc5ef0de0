select
    suite,
    protocol,
    variant,
    fold,
    model,
    task,
    predicted,
    actual
from {{ source('validation', 'lomo_predictions') }}
