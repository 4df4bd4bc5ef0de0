-- Predicted beside true scores. Candidates: their lite scores. Reference models: the prediction
-- of the fold that held their family out, by the suite's own variant; a lite score that somebody
-- asked for stands in its own table alone, because the selection has seen the model.
with suite_tasks as (select * from {{ ref('stg_suite_tasks') }}),

released as (
    select distinct suite, variant from {{ ref('stg_lite_suites') }}
),

n_released as (
    select suite, count(*) as n_tasks from {{ ref('stg_lite_suites') }} group by suite
),

held_out as (
    select p.suite, p.model, p.task, p.predicted
    from {{ ref('stg_lomo_predictions') }} as p
    inner join released as r on p.suite = r.suite and p.variant = r.variant
    where p.protocol = 'family_lomo'
),

task_predictions as (
    select s.suite, s.model, s.task, s.predicted, 'lite' as prediction
    from {{ ref('stg_task_scores') }} as s
    anti join held_out as h on s.suite = h.suite and s.model = h.model
    union all
    select suite, model, task, predicted, 'held_out' as prediction from held_out
),

tasks as (
    select
        p.suite, p.model, p.task, p.prediction, t.task_type, p.predicted, f.main_score,
        coalesce(f.is_self_reported, false) as is_self_reported,
        t.lowest_score as lowest,
        -- the parts of an aggregate count as one task together
        1.0 / count(*) over (partition by p.suite, p.model, p.prediction, t.counts_as) as share
    from task_predictions as p
    inner join suite_tasks as t on p.suite = t.suite and p.task = t.task
    left join {{ ref('stg_full_scores') }} as f
        on p.suite = f.suite and p.task = f.task and p.model = f.model
),

types as (
    select
        suite, model, prediction, task_type,
        sum(share * predicted) / sum(share) filter (predicted is not null) as predicted,
        case when count(main_score) = count(*)
            then sum(share * main_score) / sum(share) end as main_score,
        sum(share * predicted) as predicted_sum, sum(share * main_score) as main_score_sum,
        sum(share * lowest) as lowest_sum, sum(share * lowest) / sum(share) as lowest,
        sum(share) as shares, count(predicted) as n_predicted, count(main_score) as n_true,
        count(*) as n_tasks, count_if(is_self_reported) as n_self_reported
    from tasks group by suite, model, prediction, task_type
),

-- A mean is over every task of the lite suite or it is not given.
means as (
    select
        t.suite, t.model, t.prediction,
        case when sum(t.n_predicted) = any_value(n.n_tasks)
            then sum(t.predicted_sum) / sum(t.shares) end as predicted_mean,
        case when sum(t.n_predicted) = any_value(n.n_tasks)
            then avg(t.predicted) end as predicted_macro_mean,
        case when sum(t.n_true) = any_value(n.n_tasks)
            then sum(t.main_score_sum) / sum(t.shares) end as true_mean,
        case when sum(t.n_true) = any_value(n.n_tasks)
            then avg(t.main_score) end as true_macro_mean,
        case when sum(t.n_self_reported) = 0 then null
            when sum(t.n_self_reported) = sum(t.n_tasks) then 'self_reported'
            else 'partly_self_reported' end as score_provenance,
        sum(t.lowest_sum) / sum(t.shares) as lowest_mean, avg(t.lowest) as lowest_macro_mean,
        sum(t.n_predicted)::integer as n_tasks
    from types as t inner join n_released as n on t.suite = n.suite
    group by t.suite, t.model, t.prediction
),

widths as (
    select
        suite,
        max(half_width) filter (target = 'mean') as mean_half_width,
        max(half_width) filter (target = 'macro') as macro_half_width
    from {{ ref('stg_lite_suite_intervals') }} group by suite
)

select
    m.suite,
    rank() over (
        partition by m.suite
        order by case when f.headline = 'mean' then m.predicted_mean
            else m.predicted_macro_mean end desc nulls last
    )::integer as rank,
    m.model,
    s.family,
    s.role,
    m.prediction,
    m.predicted_mean,
    coalesce(
        c.mean_lower, {{ bounded('m.predicted_mean - w.mean_half_width', 'm.lowest_mean') }}
    ) as mean_lower,
    coalesce(
        c.mean_upper, {{ bounded('m.predicted_mean + w.mean_half_width', 'm.lowest_mean') }}
    ) as mean_upper,
    m.true_mean,
    m.predicted_macro_mean,
    coalesce(
        c.macro_lower, {{ bounded('m.predicted_macro_mean - w.macro_half_width', 'm.lowest_macro_mean') }}
    ) as macro_lower,
    coalesce(
        c.macro_upper, {{ bounded('m.predicted_macro_mean + w.macro_half_width', 'm.lowest_macro_mean') }}
    ) as macro_upper,
    m.true_macro_mean,
    m.predicted_macro_mean - m.true_macro_mean as macro_error,
    coalesce(c.out_of_range, false) as out_of_range,
    coalesce(c.warnings, '') as warnings,
    m.n_tasks,
    coalesce(f.headline, 'macro_mean') as headline,
    -- scores that the model's authors measured themselves, in part or all: a dagger in tables
    coalesce(s.provenance, m.score_provenance) as provenance
from means as m
inner join {{ ref('stg_suite_models') }} as s on m.suite = s.suite and m.model = s.model
left join widths as w on m.suite = w.suite
left join {{ ref('stg_suite_facts') }} as f on m.suite = f.suite
-- A candidate's interval may be its own: under a joint calibration it depends on the model.
left join {{ ref('stg_suite_scores') }} as c
    on m.suite = c.suite and m.model = c.model and m.prediction = 'lite'
