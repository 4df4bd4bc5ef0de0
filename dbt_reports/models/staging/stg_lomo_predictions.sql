select
    suite,
    protocol,
    variant,
    fold,
    model,
    task,
    {{ known('predicted') }} as predicted,
    {{ known('actual') }} as actual
from {{ source('validation', 'lomo_predictions') }}
