select
    suite,
    target,
    {{ known('half_width') }} as half_width,
    interval_method,
    level
from {{ source('lite_scores', 'lite_suite_intervals') }}
