-- Every table of the warehouse: schema = stage, grain in the comment.
-- `shared_*` tables belong to a pool, which several suites may use; the views above them add the suite.

CREATE SCHEMA IF NOT EXISTS ledger;
CREATE SCHEMA IF NOT EXISTS suites;
CREATE SCHEMA IF NOT EXISTS pools;
CREATE SCHEMA IF NOT EXISTS embeddings;
CREATE SCHEMA IF NOT EXISTS outcomes;
CREATE SCHEMA IF NOT EXISTS reference_scores;
CREATE SCHEMA IF NOT EXISTS item_parameters;
CREATE SCHEMA IF NOT EXISTS selections;
CREATE SCHEMA IF NOT EXISTS calibrations;
CREATE SCHEMA IF NOT EXISTS validation;
CREATE SCHEMA IF NOT EXISTS lite_scores;

-- one row per (asset, partition_key): what was made of which inputs, or why it failed
CREATE TABLE IF NOT EXISTS ledger.partitions (
    asset VARCHAR NOT NULL, partition_key VARCHAR NOT NULL, status VARCHAR NOT NULL,
    data_version VARCHAR, code_version VARCHAR, settings_hash VARCHAR, inputs JSON,
    reason VARCHAR, n_rows BIGINT, seconds DOUBLE, run_id VARCHAR, updated_at TIMESTAMP,
    PRIMARY KEY (asset, partition_key)
);

-- (suite, task)
CREATE TABLE IF NOT EXISTS suites.suite_tasks (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, main_metric VARCHAR, split VARCHAR,
    hf_subsets VARCHAR[], k INTEGER, estimator VARCHAR, kind VARCHAR, selection VARCHAR,
    pool_task VARCHAR, supported BOOLEAN, dataset_revision VARCHAR, mteb_version VARCHAR,
    max_tokens INTEGER
);
-- (pool_task): a task as mteb (or the user's file) defines it, whatever suite asks for it
CREATE TABLE IF NOT EXISTS suites.resolved_tasks (
    pool_task VARCHAR, task VARCHAR, task_type VARCHAR, main_metric VARCHAR, splits VARCHAR[],
    hf_subsets VARCHAR[], dataset_revision VARCHAR, source VARCHAR
);
-- (suite, model), references only: the members of the fit
CREATE TABLE IF NOT EXISTS suites.roster (
    suite VARCHAR, model VARCHAR, family VARCHAR
);
-- (suite, model), everyone registered now
CREATE TABLE IF NOT EXISTS suites.registered_models (
    suite VARCHAR, model VARCHAR, family VARCHAR, role VARCHAR, source VARCHAR
);

-- (pool_task, item_id)
CREATE TABLE IF NOT EXISTS pools.shared_pool_items (
    pool_task VARCHAR, item_id VARCHAR, hf_subset VARCHAR, split VARCHAR, stratum VARCHAR,
    gold DOUBLE, pool_weight DOUBLE
);
-- (pool_task)
CREATE TABLE IF NOT EXISTS pools.shared_pool_stats (
    pool_task VARCHAR, task VARCHAR, n_items BIGINT, n_texts BIGINT, n_available BIGINT,
    n_dropped_relevant BIGINT, seconds DOUBLE, pool_hash VARCHAR
);

-- (pool_task, model)
CREATE TABLE IF NOT EXISTS embeddings.embedding_stats (
    pool_task VARCHAR, model VARCHAR, model_fingerprint VARCHAR, revision VARCHAR,
    n_texts BIGINT, n_encoded BIGINT, dim INTEGER, seconds DOUBLE
);

-- (pool_task, model, item_id)
CREATE TABLE IF NOT EXISTS outcomes.shared_item_outcomes (
    pool_task VARCHAR, model VARCHAR, item_id VARCHAR, outcome DOUBLE
);
-- (pool_task, model)
CREATE TABLE IF NOT EXISTS outcomes.shared_pool_scores (
    pool_task VARCHAR, model VARCHAR, pool_score DOUBLE, n_items BIGINT, metrics JSON,
    observations VARCHAR, seconds DOUBLE
);
-- (pool_task, model): the same outcomes as one list in the order of item_id, for the fits
CREATE TABLE IF NOT EXISTS outcomes.outcome_matrix (
    pool_task VARCHAR, model VARCHAR, pool_score DOUBLE, outcomes DOUBLE[], observations VARCHAR
);

-- (pool_task, model)
CREATE TABLE IF NOT EXISTS reference_scores.shared_full_scores (
    pool_task VARCHAR, model VARCHAR, main_score DOUBLE, source VARCHAR, revision VARCHAR,
    mteb_version VARCHAR, seconds DOUBLE
);
-- (suite, task, model): full scores of candidates, only where someone asked for them
CREATE TABLE IF NOT EXISTS reference_scores.candidate_full_scores (
    suite VARCHAR, task VARCHAR, model VARCHAR, main_score DOUBLE, source VARCHAR,
    revision VARCHAR, mteb_version VARCHAR
);
-- (pool_task, model): the full scores of a pool's models side by side, for the fits
CREATE TABLE IF NOT EXISTS reference_scores.full_score_vectors (
    pool_task VARCHAR, model VARCHAR, main_score DOUBLE
);
-- (suite, model): at most three models a family
CREATE TABLE IF NOT EXISTS reference_scores.kept_models (
    suite VARCHAR, model VARCHAR, family VARCHAR, kept BOOLEAN, score DOUBLE, n_in_family INTEGER
);

-- (suite, task, item_id)
CREATE TABLE IF NOT EXISTS item_parameters.item_parameters (
    suite VARCHAR, task VARCHAR, item_id VARCHAR, response_model VARCHAR, slope DOUBLE,
    intercept DOUBLE, residual_sd DOUBLE, n_models INTEGER
);
-- (suite, task, model)
CREATE TABLE IF NOT EXISTS item_parameters.abilities (
    suite VARCHAR, task VARCHAR, model VARCHAR, theta DOUBLE, theta_mean DOUBLE, theta_sd DOUBLE
);

-- (suite, task, item_id)
CREATE TABLE IF NOT EXISTS selections.selected_items (
    suite VARCHAR, task VARCHAR, item_id VARCHAR, method VARCHAR, rank INTEGER, weight DOUBLE
);

-- (suite, task)
CREATE TABLE IF NOT EXISTS calibrations.calibrations (
    suite VARCHAR, task VARCHAR, method VARCHAR, estimator VARCHAR, slope DOUBLE,
    intercept DOUBLE, residual_sd DOUBLE, n_models INTEGER, theta_mean DOUBLE, theta_sd DOUBLE,
    reference_low DOUBLE, reference_high DOUBLE
);

-- (suite, protocol, variant, fold, model, task)
CREATE TABLE IF NOT EXISTS validation.lomo_predictions (
    suite VARCHAR, protocol VARCHAR, variant VARCHAR, fold VARCHAR, model VARCHAR, task VARCHAR,
    predicted DOUBLE, actual DOUBLE, n_train INTEGER
);
-- (suite, protocol, fold, model): who trained the fold
CREATE TABLE IF NOT EXISTS validation.lomo_folds (
    suite VARCHAR, protocol VARCHAR, fold VARCHAR, model VARCHAR, family VARCHAR, held_out BOOLEAN
);
-- (suite, protocol, variant, target, metric)
CREATE TABLE IF NOT EXISTS validation.validation_metrics (
    suite VARCHAR, protocol VARCHAR, variant VARCHAR, target VARCHAR, metric VARCHAR,
    value DOUBLE, n_models INTEGER
);

-- (suite, task): all that scoring a new model needs
CREATE TABLE IF NOT EXISTS lite_scores.lite_suites (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, variant VARCHAR, pool_task VARCHAR,
    pool_hash VARCHAR, fitted JSON, half_width DOUBLE, interval_method VARCHAR, reference_low DOUBLE,
    reference_high DOUBLE
);
-- (suite, target): half-widths of the intervals of tasks, types, mean and macro mean
CREATE TABLE IF NOT EXISTS lite_scores.lite_suite_intervals (
    suite VARCHAR, target VARCHAR, half_width DOUBLE, interval_method VARCHAR,
    n_families INTEGER, level DOUBLE
);
-- (suite, task, model)
CREATE TABLE IF NOT EXISTS lite_scores.task_scores (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, model VARCHAR, predicted DOUBLE, lower DOUBLE,
    upper DOUBLE, n_items INTEGER, out_of_range BOOLEAN, interval_method VARCHAR, raw DOUBLE
);
-- (suite, model)
CREATE TABLE IF NOT EXISTS lite_scores.suite_scores (
    suite VARCHAR, model VARCHAR, mean DOUBLE, mean_lower DOUBLE, mean_upper DOUBLE,
    macro_mean DOUBLE, macro_lower DOUBLE, macro_upper DOUBLE, interval_method VARCHAR,
    type_means JSON, n_tasks INTEGER, n_texts BIGINT, n_encoded BIGINT, revision VARCHAR,
    seconds DOUBLE
);

CREATE OR REPLACE VIEW suites.suite_models AS
WITH encoded AS (
    SELECT model, arg_max(revision, pool_task) AS revision FROM embeddings.embedding_stats GROUP BY model
)
SELECT r.suite, r.model, r.family, r.role, coalesce(k.kept, false) AS kept, r.source,
    coalesce(s.revision, e.revision) AS revision
FROM suites.registered_models r
LEFT JOIN reference_scores.kept_models k USING (suite, model)
LEFT JOIN lite_scores.suite_scores s USING (suite, model)
LEFT JOIN encoded e USING (model);

CREATE OR REPLACE VIEW pools.pool_items AS
SELECT t.suite, t.task, p.item_id, p.hf_subset, p.split, p.stratum, p.gold, p.pool_weight
FROM suites.suite_tasks t JOIN pools.shared_pool_items p USING (pool_task);

CREATE OR REPLACE VIEW pools.pool_stats AS
SELECT t.suite, t.task, p.n_items, p.n_texts, p.n_available, p.n_dropped_relevant, p.seconds, p.pool_hash
FROM suites.suite_tasks t JOIN pools.shared_pool_stats p USING (pool_task);

CREATE OR REPLACE VIEW outcomes.item_outcomes AS
SELECT t.suite, t.task, o.model, o.item_id, o.outcome
FROM suites.suite_tasks t JOIN outcomes.shared_item_outcomes o USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = o.model;

CREATE OR REPLACE VIEW outcomes.pool_scores AS
SELECT t.suite, t.task, o.model, o.pool_score, o.n_items, o.metrics
FROM suites.suite_tasks t JOIN outcomes.shared_pool_scores o USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = o.model;

CREATE OR REPLACE VIEW reference_scores.full_scores AS
SELECT t.suite, t.task, f.model, f.main_score, f.source, f.revision, f.mteb_version
FROM suites.suite_tasks t JOIN reference_scores.shared_full_scores f USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = f.model
UNION ALL
SELECT c.suite, c.task, c.model, c.main_score, c.source, c.revision, c.mteb_version
FROM reference_scores.candidate_full_scores c
SEMI JOIN suites.registered_models r ON r.suite = c.suite AND r.model = c.model;
