-- Candidates are scored on tasks of the released lite suite only.
select s.* from {{ ref('stg_task_scores') }} as s
anti join {{ ref('stg_lite_suites') }} as l on s.suite = l.suite and s.task = l.task
