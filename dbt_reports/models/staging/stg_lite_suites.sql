select
    suite,
    task,
    task_type,
    variant
from {{ source('lite_scores', 'lite_suites') }}
