select
    suite,
    task,
    task_type,
    model,
    predicted,
    lower,
    upper,
    out_of_range
from {{ source('lite_scores', 'task_scores') }}
