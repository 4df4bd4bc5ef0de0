"""How good are the presets? Nested validation on a simulated zoo over real full scores.

Both presets run through the same harness on 45 reference models of 33 families and the 41 tasks of
MTEB(eng, v2), at the text budget of a uniform K. `tests/support/simulator.py` says what is real and
what is simulated: full scores are official, outcomes drawn; set statistics are weighted means with
the noise of the official metrics (preset `seed`, random items) or with noise and errors of the
surrogates (preset `best`, which uses them).

    python benchmarks/bench_validation.py --k 20 --items 1000 --repetitions 5

Every repetition draws other models and other outcomes; the table shows means over them and the
range. `--nested 0` makes no choice, so that none can flatter: it takes each preset's first variant
under leave-one-family-out, in a tenth of the time.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from measuring import REPOSITORY, arguments, report

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(REPOSITORY / "tests"))

from support import public_matrix, simulator

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import types_of
from mteblite.selections.sharing import Sharing
from mteblite.validation.bootstrap import bootstrap_intervals
from mteblite.validation.fold_counts import counts_of_fold
from mteblite.validation.folds import family_by_model
from mteblite.validation.lomo import Settings, predict_protocol
from mteblite.validation.metrics import score_matrices, validation_metrics
from mteblite.validation.nested import predict_nested
from mteblite.validation.out_of_range import flag_metrics, training_ranges
from mteblite.validation.presets import packaged_presets
from mteblite.validation.targets import combine, macro_weights

STATISTICS = {"seed": simulator.mean_statistic, "best": simulator.surrogate_statistic}
POINTS = ("mae", "bias", "top1_regret", "mdad")
SAME_K = ("seed",)
"""Presets whose tasks all have K items; the others share out the tokens of K items."""
SUMMARISED = ("mae", "bias", "kendall_tau", "kendall_tau_resolvable", "coverage_90", "task_mae",
              "task_coverage", "optimism", "flagged")  # fmt: skip


def main() -> None:
    options = arguments(
        __doc__, k=20, items=400, repetitions=1, first=0, draws=20, presets="seed,best", nested=1
    )
    if not public_matrix.available():
        sys.exit("the official scores are not there: expected ../shared/scores")
    matrix = public_matrix.load_matrix()
    rows: list[dict[str, Any]] = []
    for repetition in range(options.first, options.first + options.repetitions):
        models = public_matrix.reference_models(matrix, seed=repetition)
        zoo = simulator.make_zoo(matrix, models, n_items=options.items, seed=repetition)
        for name in options.presets.split(","):
            work = judge if options.nested else judge_first
            found = work(name, zoo, options.k, repetition)
            rows += [{"preset": name, "seed": repetition, **row} for row in found]
        found = baselines(zoo, options.k, repetition, options.draws)
        rows += [{"preset": "", "seed": repetition, **row} for row in found]
    title = f"Presets at the texts of K = {options.k}, {options.items} items"
    report(title, rows, as_json=options.json)
    if options.repetitions > 1 and not options.json:
        report(f"{title}: mean and range", summary(rows), as_json=False)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and range over repetitions, by preset, protocol and what was judged."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        what = row["variant"] if row["variant"].startswith("random") else "preset"
        groups.setdefault((row["preset"], row["protocol"], what), []).append(row)
    found = []
    for (preset, protocol, what), members in groups.items():
        line: dict[str, Any] = {"preset": preset, "protocol": protocol, "what": what}
        line["draws"] = len(members)
        for name in SUMMARISED:
            values = np.array([float(m.get(name, np.nan)) for m in members])
            if np.isfinite(values).any():
                low, high = np.nanmin(values), np.nanmax(values)
                line[name] = f"{np.nanmean(values):.3f} ({low:.3f} to {high:.3f})"
        found.append(line)
    return found


def judge_first(name: str, zoo: simulator.Zoo, k: int, seed: int) -> list[dict[str, Any]]:
    """The first variant of a preset, without any choice: family folds and frontier."""
    first = without_set_statistic(packaged_presets()[name].variants[0])
    settings, refits = settings_of(name, zoo, k, seed), {}
    found = []
    for protocol in ("family_lomo", "frontier"):
        frame = predict_protocol(zoo.evidences, [first], protocol, settings, refits=refits)
        row = table(frame.assign(variant=f"{name}, {first}"), zoo)
        found.append(row | (flags(frame, zoo, protocol) if protocol == "frontier" else {}))
    return found


def settings_of(name: str, zoo: simulator.Zoo, k: int, seed: int) -> Settings:
    """The settings of a preset: K of every task, or each fold's share of the texts that K costs."""
    uniform = {e.task: k for e in zoo.evidences}
    counts = None
    if name not in SAME_K:
        sharing = Sharing(
            zoo.evidences, zoo.costs, uniform, seed, statistic=simulator.mean_statistic
        )
        counts = counts_of_fold(sharing, family_by_model(zoo.evidences))
    return Settings(uniform, seed, zoo.public, STATISTICS[name], k_of_fold=counts)


def baselines(zoo: simulator.Zoo, k: int, seed: int, draws: int) -> list[dict[str, Any]]:
    """Random items, K of every task."""
    names = ["random/mean+none", "random/mean"]
    uniform = {e.task: k for e in zoo.evidences}
    settings = Settings(uniform, seed, statistic=simulator.mean_statistic, random_draws=draws)
    found = []
    for protocol in ("family_lomo", "frontier"):
        frame = predict_protocol(zoo.evidences, names, protocol, settings)
        for base in names:
            found.append(table(frame[frame["variant"].str.partition("#")[0] == base], zoo))
    return found


def without_set_statistic(v: Variant) -> Variant:
    """In the simulation a preset's statistic stands for the choice of set statistic."""
    return Variant(v.per_item_selection, v.estimator, v.set_selection, v.calibration)


def judge(name: str, zoo: simulator.Zoo, k: int, seed: int) -> list[dict[str, Any]]:
    """Nested and frontier rows of one preset."""
    preset = packaged_presets()[name]
    variants = [without_set_statistic(v) for v in preset.variants]
    settings, refits = settings_of(name, zoo, k, seed), {}
    started = time.perf_counter()
    plain = predict_protocol(zoo.evidences, variants, "family_lomo", settings, refits=refits)
    seconds = {"lomo": time.perf_counter() - started}
    nested, chosen = predict_nested(
        zoo.evidences,
        variants,
        settings,
        refits=refits,
        name=f"{name}, nested",
        patience=preset.patience,
    )
    seconds["nested"] = time.perf_counter() - started - seconds["lomo"]
    frontier = predict_protocol(zoo.evidences, variants, "frontier", settings, refits=refits)
    favourite = str(chosen["variant"].mode()[0])
    ahead = frontier[frontier["variant"] == favourite].assign(variant=f"{name}, {favourite}")
    gap = optimism(plain, nested, zoo.types)
    return [
        table(nested, zoo) | {
            "optimism": 100 * gap, "chosen": favourite,
            "lomo_s": seconds["lomo"], "nested_s": seconds["nested"],
        },
        table(ahead, zoo) | flags(ahead, zoo, "frontier"),
    ]  # fmt: skip


def optimism(plain: pd.DataFrame, nested: pd.DataFrame, types: dict[str, str]) -> float:
    """Nested macro MAE minus that of the variant that looks best on the reported folds."""
    tasks = sorted(types)
    weights = macro_weights(tasks, types)
    plain_mae, nested_mae = (
        [float(np.nanmean(np.abs(combine(p, weights) - combine(a, weights))))
         for p, a, _ in score_matrices(frame, tasks).values()]
        for frame in (plain, nested)
    )  # fmt: skip
    return nested_mae[0] - min(plain_mae)


def table(predictions: pd.DataFrame, zoo: simulator.Zoo) -> dict[str, Any]:
    """Macro metrics of one variant, errors in points."""
    metrics = validation_metrics(predictions, zoo.types)
    macro = metrics[metrics["target"] == "macro"].set_index("metric")["value"]
    tasks = metrics[metrics["target"].str.startswith("task:")]
    by_metric = tasks.groupby("metric")["value"].mean()
    row: dict[str, Any] = {
        "protocol": metrics["protocol"].iloc[0],
        "variant": metrics["variant"].iloc[0],
    }
    for name in ("mae", "bias", "kendall_tau", "kendall_tau_resolvable", "coverage_90",
                 "top1_regret", "mdad"):  # fmt: skip
        value = float(macro.get(name, float("nan")))
        row[name] = round(100 * value if name in POINTS else value, 3)
    row["task_mae"] = round(100 * float(by_metric["mae"]), 3)
    row["task_coverage"] = round(float(by_metric.get("coverage_90", float("nan"))), 3)
    if "nested" in row["variant"]:
        ends = bootstrap_intervals(predictions, zoo.types, targets=("macro",), draws=500)
        ends = ends[ends["metric"] == "mae"].iloc[0]
        row["mae_95"] = f"{100 * ends['lower']:.2f}..{100 * ends['upper']:.2f}"
    return row


def flags(predictions: pd.DataFrame, zoo: simulator.Zoo, protocol: str) -> dict[str, Any]:
    """How often frontier models are flagged as out of range."""
    ranges = training_ranges(zoo.evidences, protocol)
    row = flag_metrics(predictions, ranges, types_of(zoo.evidences)).iloc[0]
    return {"n_beyond": int(row["n_beyond"]), "flagged": round(float(row["flagged"]), 3)}


if __name__ == "__main__":
    main()
