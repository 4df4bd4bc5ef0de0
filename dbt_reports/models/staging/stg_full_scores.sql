-- What the view is made of:
-- depends_on: {{ source('suites', 'suite_tasks') }}
-- depends_on: {{ source('suites', 'registered_models') }}
-- depends_on: {{ source('reference_scores', 'candidate_full_scores') }}
select
    suite,
    task,
    model,
    {{ known('main_score') }} as main_score,
    source as score_source,
    -- mteb's results keep scores from model cards under a revision of this name
    coalesce(list_contains(string_split(revision, ','), 'external'), false) as is_self_reported
from {{ source('reference_scores', 'full_scores') }}
