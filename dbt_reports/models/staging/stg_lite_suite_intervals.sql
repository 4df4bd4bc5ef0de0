select
    suite,
    target,
    half_width,
    interval_method,
    level
from {{ source('lite_scores', 'lite_suite_intervals') }}
