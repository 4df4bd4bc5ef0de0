"""How long does validating a suite take? The harness against a straightforward loop.

A simulated suite of the size of eng-super (41 tasks x 1,000 items x 46 models of 33 families): all
seed variants and baselines under leave-one-family-out and leave-one-model-out.

    python benchmarks/bench_harness.py --k 20                  # the harness alone
    python benchmarks/bench_harness.py --k 20 --loop 3         # and a loop on 3 tasks of each kind
    python benchmarks/bench_harness.py --k 20 --nested seed    # and the nested folds of a preset
    python benchmarks/bench_harness.py --k 20 --growth 1       # and half the items, half the models

The loop (`loop_validation.py`) is timed on a sample of tasks and folds and extrapolated by the
number of folds and tasks of either kind, in processor seconds, which other people's load disturbs
less. `shared` lets all variants of a fold share its fits and selections; `variant by variant` does
not, as a script that evaluates one variant after the other would.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measuring import REPOSITORY, arguments, report

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(REPOSITORY / "tests"))

import loop_validation
from support import public_matrix, simulator
from support.fits import predict_held_out

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.kmeans import kmeans
from mteblite.seeds import generator
from mteblite.validation.folds import make_folds, mean_scores
from mteblite.validation.lomo import Settings
from mteblite.validation.nested import predict_nested
from mteblite.validation.presets import packaged_presets
from mteblite.validation.variants import suite_variants

PROTOCOLS = ("family_lomo", "model_lomo")
DRAWS = 50
PER_ITEM = [(s, e) for s in ("anchor", "fisher") for e in ("mean", "pirt", "gp")]
SETS = ["strat", "anchorset"]


def main() -> None:
    options = arguments(
        __doc__, k=20, items=1000, models=46, every=1, workers=2, loop=0, nested="", growth=0
    )
    if not public_matrix.available():
        sys.exit("the official scores are not there: expected ../shared/scores")
    kmeans(np.eye(3), np.ones(3), 2, generator("warm"))  # compile, or read compiled code
    evidences = suite(options.models, options.items)[:: options.every]
    rows = [harness(evidences, options.k, options.workers)]
    if options.growth:
        smaller = suite(options.models, options.items // 2)[:: options.every]
        rows.append(harness(smaller, options.k, options.workers))
        smaller = suite(options.models // 2, options.items)[:: options.every]
        rows.append(harness(smaller, options.k, options.workers))
    if options.nested:
        rows.append(nested(evidences, options.k, options.workers, options.nested))
    if options.loop:
        rows += loop(evidences, options.k, options.loop, rows[0]["cpu_s"])
    report(f"Validation at K = {options.k}", rows, as_json=options.json)


def suite(n_models: int, n_items: int) -> list[TaskEvidence]:
    matrix = public_matrix.load_matrix()
    families = min(33, n_models)
    models = public_matrix.reference_models(
        matrix, n_models, families if n_models > 33 else n_models
    )
    return simulator.make_zoo(matrix, models, n_items=n_items).evidences


def harness(evidences: list[TaskEvidence], k: int, workers: int) -> dict[str, Any]:
    """All seed variants and baselines, both protocols."""
    wall, cpu = time.perf_counter(), time.process_time()
    refits: dict[str, Any] = {}
    n_rows = 0
    for protocol in PROTOCOLS:
        frame = predict_held_out(
            evidences, suite_variants(), {e.task: k for e in evidences}, protocol, 0,
            refits=refits, statistic=simulator.mean_statistic, random_draws=DRAWS,
            workers=workers,
        )  # fmt: skip
        n_rows += len(frame)
    return row("harness", evidences, wall, cpu) | {"predictions": n_rows}


def nested(evidences: list[TaskEvidence], k: int, workers: int, name: str) -> dict[str, Any]:
    """Nested family folds of a preset."""
    preset = packaged_presets()[name]
    # The official statistic, because the simulated surrogate takes the same time.
    variants = [
        Variant(v.per_item_selection, v.estimator, v.set_selection, v.calibration)
        for v in preset.variants
    ]
    settings = Settings(
        {e.task: k for e in evidences}, 0, statistic=simulator.mean_statistic, workers=workers
    )
    wall, cpu = time.perf_counter(), time.process_time()
    predict_nested(evidences, variants, settings, patience=preset.patience)
    return row(f"nested, {name}", evidences, wall, cpu)


def row(what: str, evidences: list[TaskEvidence], wall: float, cpu: float) -> dict[str, Any]:
    return {
        "what": what,
        "tasks": len(evidences),
        "items": max(len(e.items) for e in evidences),
        "models": len(evidences[0].models),
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def loop(evidences: list[TaskEvidence], k: int, n_tasks: int, ours: float) -> list[dict[str, Any]]:
    """Processor seconds of the loop: measured on a few tasks and folds, extrapolated."""
    warnings.filterwarnings("ignore")
    families = dict(zip(evidences[0].models, evidences[0].families, strict=True))
    scores = mean_scores(evidences)
    n_folds = sum(len(make_folds(p, families, scores)) for p in PROTOCOLS)
    fold = make_folds("family_lomo", families, scores)[0]
    seconds = np.zeros(2)
    sampled = 0
    for kind, one_fold in (("per_item", per_item_seconds), ("set_metric", set_seconds)):
        whole = [e for e in evidences if e.kind == kind]
        sample = [whole[int(i)] for i in np.linspace(0, len(whole) - 1, n_tasks)]
        for evidence in sample:
            train = np.array([fold.trains(m) for m in evidence.models])
            found = one_fold(evidence, train, min(k, len(evidence.items) - 1))
            seconds += n_folds * len(whole) / len(sample) * np.array(found)
            sampled += 1
    return [
        {
            "what": f"loop, {name} (extrapolated)",
            "tasks": len(evidences),
            "items": max(len(e.items) for e in evidences),
            "models": len(families),
            "cpu_s": round(value),
            "loop / harness": round(value / ours),
            "measured": f"{sampled} tasks, 1 of {n_folds} folds",
        }
        for name, value in zip(("shared", "variant by variant"), seconds.tolist(), strict=True)
    ]


def per_item_seconds(evidence: TaskEvidence, train: np.ndarray, k: int) -> tuple[float, float]:
    """Seconds of the seed variants and random draws in one fold: shared, and one by one."""
    fold = partial(loop_validation.per_item_fold, evidence, train, k)
    draws = taken(partial(loop_validation.random_draws, evidence, train, k, DRAWS))
    alone = sum(taken(partial(fold, [variant])) for variant in PER_ITEM)
    # Every one of these stands for two seed variants, which differ in the set selection.
    return taken(partial(fold, PER_ITEM)) + draws, 2 * alone + draws


def set_seconds(evidence: TaskEvidence, train: np.ndarray, k: int) -> tuple[float, float]:
    """The same of a set metric; each selection stands for six seed variants."""
    statistic = simulator.mean_statistic

    def fold(selections: list[str]) -> None:
        loop_validation.set_fold(evidence, train, k, selections, statistic)

    draws = taken(partial(loop_validation.random_draws, evidence, train, k, DRAWS))
    alone = sum(taken(partial(fold, [selection])) for selection in SETS)
    return taken(partial(fold, SETS)) + draws, 6 * alone + draws


def taken(work: Callable[[], Any]) -> float:
    """Processor seconds."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
