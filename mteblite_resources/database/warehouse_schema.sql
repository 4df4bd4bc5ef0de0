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
-- hash of the rows as they are stored, see row_facts.py; NULL where it is not known
ALTER TABLE ledger.partitions ADD COLUMN IF NOT EXISTS content VARCHAR;

-- one row: which version of this file the tables were last brought up to; see warehouse_schema.py
CREATE TABLE IF NOT EXISTS ledger.schema_version (digest VARCHAR NOT NULL);
ALTER TABLE ledger.schema_version ADD COLUMN IF NOT EXISTS number INTEGER;
-- one row, in a snapshot only: the state of the writer's file that it is a copy of
CREATE TABLE IF NOT EXISTS ledger.publication (writer_state VARCHAR NOT NULL);

-- (suite, task)
CREATE TABLE IF NOT EXISTS suites.suite_tasks (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, main_metric VARCHAR, split VARCHAR,
    hf_subsets VARCHAR[], k INTEGER, estimator VARCHAR, kind VARCHAR, selection VARCHAR,
    pool_task VARCHAR, supported BOOLEAN, dataset_revision VARCHAR, mteb_version VARCHAR,
    max_tokens INTEGER, part_of VARCHAR
);
ALTER TABLE suites.suite_tasks ADD COLUMN IF NOT EXISTS part_of VARCHAR;
-- facts of the type, NULL for a type that is not supported: the lowest possible main score and
-- outcome, and whether the weighted mean of the outcomes is the score
ALTER TABLE suites.suite_tasks ADD COLUMN IF NOT EXISTS lowest_score DOUBLE;
ALTER TABLE suites.suite_tasks ADD COLUMN IF NOT EXISTS lowest_outcome DOUBLE;
ALTER TABLE suites.suite_tasks ADD COLUMN IF NOT EXISTS mean_is_score BOOLEAN;
-- (suite): what holds for the whole suite; headline is `mean` or `macro_mean`
CREATE TABLE IF NOT EXISTS suites.suite_facts (
    suite VARCHAR, benchmark VARCHAR, headline VARCHAR, n_tasks INTEGER, n_left_out INTEGER
);
ALTER TABLE suites.suite_facts DROP COLUMN IF EXISTS n_absent_models;
-- (suite, task): tasks that were asked for and cannot take part, with the reason
CREATE TABLE IF NOT EXISTS suites.left_out_tasks (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, reason VARCHAR
);
-- (suite, task, what): how the installed mteb differs from the one that the tasks were frozen with
CREATE TABLE IF NOT EXISTS suites.mteb_differences (
    suite VARCHAR, task VARCHAR, what VARCHAR, frozen VARCHAR, found VARCHAR, mteb_version VARCHAR
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
    suite VARCHAR, model VARCHAR, family VARCHAR, role VARCHAR, source VARCHAR, provenance VARCHAR
);
ALTER TABLE suites.registered_models ADD COLUMN IF NOT EXISTS provenance VARCHAR;

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
-- (pool_task): tokens that one more item costs beside others, that all items share, and of all texts
CREATE TABLE IF NOT EXISTS pools.shared_pool_costs (
    pool_task VARCHAR, item_tokens DOUBLE, shared_tokens DOUBLE, n_tokens BIGINT
);
-- (pool_task, item_id): tokens of the texts that an item brings by itself
CREATE TABLE IF NOT EXISTS pools.shared_item_costs (
    pool_task VARCHAR, item_id VARCHAR, tokens BIGINT
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

-- (file): every file of the official results, read or refused; sizes and times spare a second reading
CREATE TABLE IF NOT EXISTS reference_scores.ingested_files (
    file_id INTEGER, path VARCHAR, size BIGINT, mtime_ns BIGINT, read_with VARCHAR,
    model_name VARCHAR, revision VARCHAR, mteb_version VARCHAR, task_name VARCHAR,
    experiment VARCHAR, dataset_revision VARCHAR, result_format VARCHAR, registered BOOLEAN,
    picked BOOLEAN, n_cells INTEGER, repaired VARCHAR, refused VARCHAR
);
-- (file, split, hf_subset, entry_ix)
CREATE TABLE IF NOT EXISTS reference_scores.ingested_cells (
    file_id INTEGER, split VARCHAR, hf_subset VARCHAR, entry_ix SMALLINT, main_score DOUBLE,
    repaired VARCHAR, refused VARCHAR
);
-- (file or cell, reason): what was refused, and what was taken with a note
CREATE TABLE IF NOT EXISTS reference_scores.quarantine (
    file_id INTEGER, file VARCHAR, model_name VARCHAR, revision VARCHAR, mteb_version VARCHAR,
    task_name VARCHAR, split VARCHAR, hf_subset VARCHAR, entry_ix SMALLINT, main_score DOUBLE,
    reason VARCHAR, decision VARCHAR
);
-- (one row): version of the rules that the quarantine was made by
CREATE TABLE IF NOT EXISTS reference_scores.quarantine_rules (rules VARCHAR);
-- (source): what a source of official results held when it was last read
CREATE TABLE IF NOT EXISTS reference_scores.result_sources (
    source VARCHAR, kind VARCHAR, n_files BIGINT, n_read BIGINT, n_refused_files BIGINT,
    n_cells BIGINT, n_picked BIGINT, n_quarantined BIGINT, content VARCHAR, seconds DOUBLE
);
-- (pool_task, model): the official score of every public model that has all cells of the task
CREATE TABLE IF NOT EXISTS reference_scores.public_scores (
    pool_task VARCHAR, model VARCHAR, main_score DOUBLE, revision VARCHAR, mteb_version VARCHAR,
    registered BOOLEAN, repaired VARCHAR, refused VARCHAR, noted VARCHAR
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

-- (suite, task): how many items are selected; `spread` is NULL where items are shared out equally,
-- `tokens` where k items are taken, whatever they cost; else as many as these tokens pay
CREATE TABLE IF NOT EXISTS selections.allocations (
    suite VARCHAR, task VARCHAR, k INTEGER, item_tokens DOUBLE, spread DOUBLE
);
ALTER TABLE selections.allocations ADD COLUMN IF NOT EXISTS tokens DOUBLE;
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
-- (suite, protocol, fold): macro means of the fold's training models
CREATE TABLE IF NOT EXISTS validation.fold_ranges (
    suite VARCHAR, protocol VARCHAR, fold VARCHAR, low DOUBLE, high DOUBLE
);
-- (suite, preset, fold): the variant that the other families chose
CREATE TABLE IF NOT EXISTS validation.nested_choices (
    suite VARCHAR, preset VARCHAR, fold VARCHAR, variant VARCHAR, inner_mae DOUBLE,
    runner_up_mae DOUBLE
);
-- (suite, protocol, variant, target, metric); lower and upper: 95 % bootstrap over families
CREATE TABLE IF NOT EXISTS validation.validation_metrics (
    suite VARCHAR, protocol VARCHAR, variant VARCHAR, target VARCHAR, metric VARCHAR,
    value DOUBLE, n_models INTEGER
);
ALTER TABLE validation.validation_metrics ADD COLUMN IF NOT EXISTS lower DOUBLE;
ALTER TABLE validation.validation_metrics ADD COLUMN IF NOT EXISTS upper DOUBLE;

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
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS reference_low DOUBLE;
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS reference_high DOUBLE;
-- half-widths of differences of two models, see lite_scores/pair_widths.py
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS pair_sd DOUBLE;
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS stranger_factor DOUBLE;
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS sibling_factor DOUBLE;
ALTER TABLE lite_scores.lite_suite_intervals ADD COLUMN IF NOT EXISTS sibling_families INTEGER;
-- (suite), suites with a calibration over all tasks only: see lite_scores/joint_scores.py
CREATE TABLE IF NOT EXISTS lite_scores.lite_suite_joint (suite VARCHAR, joint JSON);
-- (suite, task, model)
CREATE TABLE IF NOT EXISTS lite_scores.task_scores (
    suite VARCHAR, task VARCHAR, task_type VARCHAR, model VARCHAR, predicted DOUBLE, lower DOUBLE,
    upper DOUBLE, n_items INTEGER, out_of_range BOOLEAN, interval_method VARCHAR, raw DOUBLE
);
-- `observed`: false for a task that could not be scored and was predicted from the others
ALTER TABLE lite_scores.task_scores ADD COLUMN IF NOT EXISTS observed BOOLEAN;
-- (suite, task, model, item_id): what the model did on a selected item: its outcome, or the
-- observation that the set metric is made of
CREATE TABLE IF NOT EXISTS lite_scores.selected_observations (
    suite VARCHAR, task VARCHAR, model VARCHAR, item_id VARCHAR, rank INTEGER, observed DOUBLE[]
);
-- (suite, task_type, model)
CREATE TABLE IF NOT EXISTS lite_scores.type_scores (
    suite VARCHAR, task_type VARCHAR, model VARCHAR, predicted DOUBLE, lower DOUBLE, upper DOUBLE,
    interval_method VARCHAR, out_of_range BOOLEAN
);
-- (suite, model)
CREATE TABLE IF NOT EXISTS lite_scores.suite_scores (
    suite VARCHAR, model VARCHAR, mean DOUBLE, mean_lower DOUBLE, mean_upper DOUBLE,
    macro_mean DOUBLE, macro_lower DOUBLE, macro_upper DOUBLE, interval_method VARCHAR,
    type_means JSON, n_tasks INTEGER, n_texts BIGINT, n_encoded BIGINT, revision VARCHAR,
    seconds DOUBLE
);
ALTER TABLE lite_scores.suite_scores ADD COLUMN IF NOT EXISTS out_of_range BOOLEAN;
-- what the scores silently depend on: sentences joined by "; ", '' without any
ALTER TABLE lite_scores.suite_scores ADD COLUMN IF NOT EXISTS warnings VARCHAR;

-- (suite, version): every release that was exported; none is ever changed
CREATE TABLE IF NOT EXISTS lite_scores.releases (
    suite VARCHAR, version VARCHAR, number INTEGER, content_hash VARCHAR, created_from VARCHAR,
    variant VARCHAR, mteb_version VARCHAR, mteblite_version VARCHAR, n_tasks INTEGER, n_items INTEGER
);

-- columns that tables of an earlier version lack
ALTER TABLE suites.suite_tasks ADD COLUMN IF NOT EXISTS part_of VARCHAR;
ALTER TABLE suites.registered_models ADD COLUMN IF NOT EXISTS provenance VARCHAR;

CREATE OR REPLACE VIEW suites.suite_models AS
WITH encoded AS (
    SELECT model, arg_max(revision, pool_task) AS revision FROM embeddings.embedding_stats GROUP BY model
)
SELECT r.suite, r.model, r.family, r.role, coalesce(k.kept, false) AS kept, r.source,
    coalesce(s.revision, e.revision) AS revision, r.provenance
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

CREATE OR REPLACE VIEW pools.pool_costs AS
SELECT t.suite, t.task, c.item_tokens, c.shared_tokens, c.n_tokens
FROM suites.suite_tasks t JOIN pools.shared_pool_costs c USING (pool_task);

CREATE OR REPLACE VIEW outcomes.item_outcomes AS
SELECT t.suite, t.task, o.model, o.item_id, o.outcome
FROM suites.suite_tasks t JOIN outcomes.shared_item_outcomes o USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = o.model;

CREATE OR REPLACE VIEW outcomes.pool_scores AS
SELECT t.suite, t.task, o.model, o.pool_score, o.n_items, o.metrics
FROM suites.suite_tasks t JOIN outcomes.shared_pool_scores o USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = o.model;

CREATE OR REPLACE VIEW reference_scores.official_cells AS
SELECT f.model_name, f.revision, f.mteb_version, f.task_name, c.split, c.hf_subset, c.main_score,
    f.path AS file, concat_ws('; ', f.repaired, c.repaired) AS repaired, f.picked, f.experiment,
    c.entry_ix, f.dataset_revision, f.registered, c.file_id
FROM reference_scores.ingested_files f JOIN reference_scores.ingested_cells c USING (file_id);

CREATE OR REPLACE VIEW reference_scores.full_scores AS
SELECT t.suite, t.task, f.model, f.main_score, f.source, f.revision, f.mteb_version
FROM suites.suite_tasks t JOIN reference_scores.shared_full_scores f USING (pool_task)
SEMI JOIN suites.registered_models r ON r.suite = t.suite AND r.model = f.model
UNION ALL
SELECT c.suite, c.task, c.model, c.main_score, c.source, c.revision, c.mteb_version
FROM reference_scores.candidate_full_scores c
SEMI JOIN suites.registered_models r ON r.suite = c.suite AND r.model = c.model;
