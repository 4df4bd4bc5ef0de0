select
    suite,
    model,
    mean,
    mean_lower,
    mean_upper,
    macro_mean,
    macro_lower,
    macro_upper,
    n_tasks
from {{ source('lite_scores', 'suite_scores') }}
