select
    suite,
    task,
    model,
    {{ known('main_score') }} as main_score,
    source as score_source
from {{ source('reference_scores', 'full_scores') }}
