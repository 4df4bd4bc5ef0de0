select
    suite,
    model,
    {{ known('mean') }} as mean,
    {{ known('mean_lower') }} as mean_lower,
    {{ known('mean_upper') }} as mean_upper,
    {{ known('macro_mean') }} as macro_mean,
    {{ known('macro_lower') }} as macro_lower,
    {{ known('macro_upper') }} as macro_upper,
    interval_method,
    out_of_range,
    coalesce(warnings, '') as warnings,
    n_tasks
from {{ source('lite_scores', 'suite_scores') }}
