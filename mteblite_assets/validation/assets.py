"""Validation: every variant with each family held out, compared with random items and the pool."""

from __future__ import annotations

from typing import Any

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.suites.task_types import task_types
from mteblite.validation.fold_counts import counts_of_fold
from mteblite.validation.folds import family_by_model
from mteblite.validation.lomo import Settings
from mteblite.validation.presets import Preset, find_preset
from mteblite.validation.public_scores import gather_public_scores
from mteblite.validation.published import published_metrics
from mteblite.validation.running import validate
from mteblite.validation.variants import without_draw
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidences_of
from mteblite_assets.selections.assets import sharing_of, token_costs_of
from mteblite_assets.validation.official_scores import (
    official_scores,
    official_settings,
    uses_official,
)


def _settings(context: SettingsContext) -> Any:
    file = context.suite.file
    counts = {e.task: e.k for e in context.suite.tasks}
    return (
        str(Variant.chosen(file)), file.response_model, file.preset, file.validation.model_dump(),
        counts, file.allocation, file.token_budget, file.pool.seed, *official_settings(context),
    )  # fmt: skip


def validation_settings(work: Work, evidences: list[TaskEvidence]) -> Settings:
    """Return the settings of all folds of the work's suite, from its input rows."""
    file = work.suite.file
    known = {m for e in evidences for m in e.models}
    counts = None
    if file.shares_out:
        counts = counts_of_fold(sharing_of(work), family_by_model(evidences))
    costs = {e.task: token_costs_of(work, e) for e in evidences}
    return Settings(
        k_by_task={e.task: e.k for e in work.suite.tasks},
        seed=file.pool.seed,
        public=gather_public_scores(
            work.rows("suites.suite_tasks"),
            work.rows("reference_scores.kept_models"),
            work.rows("reference_scores.full_score_vectors"),
            known,
            official_scores(work),
        ),
        response_model=file.response_model,
        random_draws=file.validation.random_draws,
        token_costs={task: tokens for task, tokens in costs.items() if tokens is not None},
        compared=Variant.chosen(file),
        k_of_fold=counts,
        by_token=file.pays_by_token,
        suite=work.suite.name,
    )


@stage_asset(
    grain=Grain.SUITE,
    # Each fold makes its own calibrations. The asset is a dep so that the graph shows what is
    # validated, and a change of method validates again.
    deps=[*EVIDENCE, "pool_costs", "calibrations"],
    optional={"public_scores": uses_official},
    tables=[
        "validation.lomo_predictions",
        "validation.lomo_folds",
        "validation.fold_ranges",
        "validation.nested_choices",
    ],
    code_version="6",
    nullable=["predicted"],
    settings=_settings,
    checks=[
        Check(
            "held_out_family_absent_from_its_fit",
            "No model of a held-out family trains the fold that predicts it.",
            "SELECT t.suite, t.protocol, t.fold, t.model, t.family FROM validation.lomo_folds t "
            "JOIN validation.lomo_folds h USING (suite, protocol, fold) "
            "WHERE NOT t.held_out AND h.held_out AND t.protocol <> 'model_lomo' "
            "AND t.family = h.family",
        ),
        Check(
            "predicted_models_held_out",
            "A prediction is for a model that its fold held out.",
            "SELECT p.suite, p.protocol, p.fold, p.model FROM validation.lomo_predictions p "
            "JOIN validation.lomo_folds f USING (suite, protocol, fold, model) "
            "WHERE NOT f.held_out",
        ),
    ],
)
def lomo_predictions(work: Work) -> Produced:
    """One row per (suite, protocol, variant, fold, model, task): predicted and actual score.

    Each fold holds out a family or a single model, or trains on the lowest families and holds out
    the best. Items are fitted, selected and calibrated without the held-out models, which are then
    predicted. The nested protocol also chooses the variant inside each fold. Baselines are random
    items and the whole pool. Variants that end in `#01` and so on are further draws of items. Joint
    calibrations also use official scores of public models, without the held-out family, its
    fine-tunes and its ancestors; on the frontier also without all public models that are better
    than every training model.
    """
    file = work.suite.file
    evidences, left_out = evidences_of(work)
    if not evidences:
        raise ValueError("; ".join(left_out))
    found = validate(
        evidences,
        Variant.chosen(file),
        _preset(work),
        file.validation.protocols,
        validation_settings(work, evidences),
        lambda protocol, done, total: work.progress(f"{protocol}: {done} of {total} tasks"),
        item_draws=file.validation.item_draws,
    )
    choices = found.choices["variant"].value_counts()
    return Produced(
        {
            "validation.lomo_predictions": found.predictions,
            "validation.lomo_folds": found.folds,
            "validation.fold_ranges": found.ranges,
            "validation.nested_choices": found.choices,
        },
        {
            "tasks": len(evidences),
            "left_out": "; ".join(left_out) or "none",
            "variants": found.predictions["variant"].map(without_draw).nunique(),
            "folds": str(found.folds.groupby("protocol")["fold"].nunique().to_dict()),
            "absent": "; ".join(f"{p}: {why}" for p, why in found.absent.items()) or "none",
            "chosen": ", ".join(f"{v} {n}" for v, n in choices.items()) or "none",
        },
    )


@stage_asset(
    grain=Grain.SUITE,
    deps=["suite_tasks", "lomo_predictions"],
    tables=["validation.validation_metrics"],
    code_version="3",
    settings=lambda context: context.suite.file.preset,
    checks=[
        Check(
            "errors_not_negative",
            "Mean absolute errors are finite and at least 0.",
            "SELECT * FROM validation.validation_metrics "
            "WHERE metric = 'mae' AND value IS NOT NULL AND (value < 0 OR NOT isfinite(value))",
        )
    ],
)
def validation_metrics(work: Work) -> Produced:
    """One row per (suite, protocol, variant, target, metric): value and its 95 % interval.

    Targets are `macro`, `mean` and each `task:<name>`. Metrics of all: `mae`, `mae_draw_sd` (over
    the item draws of a variant), `bias` (predicted minus actual), `pearson`, `kendall_tau` (tau-b),
    `kendall_tau_resolvable` (pairs at least half a point apart), `top1_regret`, `mdad` (the gap
    from which 80 % of pairs are ordered rightly) and `coverage_90`. Of macro and mean also
    `within_family_tau`, `mae_minus_random` (against `random/mean` on the same models, paired) and
    `share_better_than_random` (of the bootstrap draws). Of macro also `out_of_range_flagged` (share
    of the models beyond all training models that the prediction flags) and
    `out_of_range_false_flags`; and of the nested protocol `naive_best_mae` (of the best variant,
    chosen with hindsight) and `optimism` (how much larger the nested error is). NaN where a metric
    is not defined; lower and upper from redrawn families and item draws.
    """
    folds = work.rows("validation.lomo_folds")
    preset = _preset(work)
    rows = published_metrics(
        work.rows("validation.lomo_predictions"),
        task_types(work.rows("suites.suite_tasks")),
        dict(zip(folds["model"], folds["family"], strict=True)),
        work.rows("validation.fold_ranges"),
        [str(v) for v in preset.variants] if preset else [],
    )
    macro = rows[(rows["protocol"] == "family_lomo") & (rows["target"] == "macro")]
    table = macro.pivot_table(index="variant", columns="metric", values="value")
    return Produced(
        {"validation.validation_metrics": rows},
        {"rows": len(rows), "macro (family_lomo)": table.round(4).to_markdown()},
    )


def _preset(work: Work) -> Preset | None:
    name = work.suite.file.preset
    return None if name is None else find_preset(name)
