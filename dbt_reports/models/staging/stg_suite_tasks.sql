select
    suite,
    task,
    task_type,
    main_metric,
    k,
    selection,
    estimator,
    kind
from {{ source('suites', 'suite_tasks') }}
