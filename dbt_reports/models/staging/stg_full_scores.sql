select
    suite,
    task,
    model,
    main_score,
    source as score_source
from {{ source('reference_scores', 'full_scores') }}
