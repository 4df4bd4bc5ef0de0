select
    suite,
    task,
    task_type,
    model,
    {{ known('predicted') }} as predicted,
    {{ known('lower') }} as lower,
    {{ known('upper') }} as upper,
    out_of_range,
    coalesce(observed, true) as observed
from {{ source('lite_scores', 'task_scores') }}
