-- How far lite scores can be trusted: one row per variant and target, metrics side by side,
-- with what random items of the same number and the whole pool would give.
with metrics as (
    select * from {{ ref('stg_validation_metrics') }}
    where target in ('macro', 'mean')
),

wide as (
    select
        suite, protocol, variant, target,
        max(value) filter (metric = 'mae') as mae,
        max(value) filter (metric = 'bias') as bias,
        max(value) filter (metric = 'kendall_tau') as kendall_tau,
        max(value) filter (metric = 'kendall_tau_resolvable') as kendall_tau_resolvable,
        max(value) filter (metric = 'pearson') as pearson,
        max(value) filter (metric = 'coverage_90') as coverage_90,
        max(n_models)::integer as n_models
    from metrics group by suite, protocol, variant, target
),

baselines as (
    select
        suite, protocol, target,
        max(mae) filter (variant = 'random/mean') as random_mae,
        max(mae) filter (variant = 'pool/mean') as pool_mae
    from wide group by suite, protocol, target
)

select
    w.suite, w.protocol, w.target, w.variant,
    r.variant is not null as chosen,
    w.mae, w.bias, w.kendall_tau, w.kendall_tau_resolvable, w.pearson, w.coverage_90, w.n_models,
    b.random_mae, b.pool_mae,
    case when b.random_mae > 0 then w.mae / b.random_mae end as mae_ratio_to_random
from wide as w
inner join baselines as b using (suite, protocol, target)
left join (select distinct suite, variant from {{ ref('stg_lite_suites') }}) as r
    on w.suite = r.suite and w.variant = r.variant
