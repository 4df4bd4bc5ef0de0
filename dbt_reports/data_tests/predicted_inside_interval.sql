-- A predicted mean lies inside its own interval.
select * from {{ ref('lite_leaderboard') }}
where predicted_macro_mean < macro_lower or predicted_macro_mean > macro_upper
    or predicted_mean < mean_lower or predicted_mean > mean_upper
