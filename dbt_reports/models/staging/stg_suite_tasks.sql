select
    suite,
    task,
    task_type,
    coalesce(nullif(part_of, ''), task) as counts_as,
    main_metric,
    k,
    selection,
    estimator,
    kind,
    lowest_score
from {{ source('suites', 'suite_tasks') }}
