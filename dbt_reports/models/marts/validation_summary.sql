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
        max(lower) filter (metric = 'mae') as mae_lower,
        max(upper) filter (metric = 'mae') as mae_upper,
        max(value) filter (metric = 'mae_draw_sd') as mae_draw_sd,
        max(value) filter (metric = 'bias') as bias,
        max(value) filter (metric = 'kendall_tau') as kendall_tau,
        max(lower) filter (metric = 'kendall_tau') as kendall_tau_lower,
        max(upper) filter (metric = 'kendall_tau') as kendall_tau_upper,
        max(value) filter (metric = 'kendall_tau_resolvable') as kendall_tau_resolvable,
        max(value) filter (metric = 'pearson') as pearson,
        max(value) filter (metric = 'coverage_90') as coverage_90,
        max(value) filter (metric = 'top1_regret') as top1_regret,
        max(value) filter (metric = 'mdad') as mdad,
        max(value) filter (metric = 'mae_minus_random') as mae_minus_random,
        max(lower) filter (metric = 'mae_minus_random') as mae_minus_random_lower,
        max(upper) filter (metric = 'mae_minus_random') as mae_minus_random_upper,
        max(value) filter (metric = 'out_of_range_flagged') as out_of_range_flagged,
        max(value) filter (metric = 'out_of_range_false_flags') as out_of_range_false_flags,
        max(value) filter (metric = 'naive_best_mae') as naive_best_mae,
        max(value) filter (metric = 'optimism') as optimism,
        max(n_models) filter (metric = 'mae')::integer as n_models
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
    w.mae, w.mae_lower, w.mae_upper, w.mae_draw_sd, w.bias,
    w.kendall_tau, w.kendall_tau_lower, w.kendall_tau_upper, w.kendall_tau_resolvable,
    w.pearson, w.coverage_90, w.top1_regret, w.mdad, w.n_models,
    b.random_mae, b.pool_mae,
    case when b.random_mae > 0 then w.mae / b.random_mae end as mae_ratio_to_random,
    w.mae_minus_random, w.mae_minus_random_lower, w.mae_minus_random_upper,
    w.out_of_range_flagged, w.out_of_range_false_flags, w.naive_best_mae, w.optimism
from wide as w
-- The nested protocol has the folds of family_lomo, and so its baselines.
left join baselines as b
    on w.suite = b.suite and w.target = b.target
    and b.protocol
    = case when w.protocol = 'nested_family_lomo' then 'family_lomo' else w.protocol end
left join (select distinct suite, variant from {{ ref('stg_lite_suites') }}) as r
    on w.suite = r.suite and w.variant = r.variant
