"""Do the intervals of differences of two models cover, and are decided verdicts right?

Two families (or one, for siblings) are held out of everything: items, selection, calibration, and
the pairs that set the widths. The other models make a suite, which compares each pair of held-out
models; their true difference is that of their full scores. Real models come from a home that holds
the suite (`--home`), simulated ones from `tests/support/simulator.py`.

    python benchmarks/bench_pairs.py --home .mteblite --suite sample
    python benchmarks/bench_pairs.py --items 300 --folds 60

`redrawn only` are the intervals of items alone: 1.645 standard deviations over redrawn items.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import REPOSITORY, arguments, report

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(REPOSITORY / "tests"))

from stored_evidence import stored_evidence
from support import simulator
from threadpoolctl import threadpool_limits

from mteblite.calibrations.blup import Blup
from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.registry import Statistic
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.lite_scores.intervals import interval_half_widths
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.joint_fitting import EVERYTHING
from mteblite.lite_scores.pair_widths import with_pair_widths
from mteblite.lite_scores.pairing import paired_differences
from mteblite.lite_scores.redraws import redraw_variance, redrawn
from mteblite.seeds import generator
from mteblite.task_types.scoring import set_statistic
from mteblite.validation.joint_folds import JointFolds, PublicScores
from mteblite.validation.lomo import MIN_TRAINING_MODELS, Settings, predict_protocol, refits_of
from mteblite.validation.targets import combine, target_weights
from mteblite.validation.variants import parse_variant

Z = 1.6448536269514722
"""Of a 90 % interval."""


@dataclass(frozen=True)
class Zoo:
    """A suite and how its items are chosen and scored."""

    evidences: list[TaskEvidence]
    k: int
    variant: Variant
    statistic: Statistic = set_statistic
    public: PublicScores | None = None
    seed: int = 0
    types: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """Settings of all fits."""
        counts = {e.task: self.k for e in self.evidences}
        return Settings(counts, self.seed, self.public, self.statistic)


def main() -> None:
    options = arguments(
        __doc__, home="", suite="sample", k=20, items=300, repetitions=1, folds=60,
        variants="anchor/mean/anchorset,strat_difficulty/mean/strat_difficulty+blup",
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name in options.variants.split(","):
        for seed in range(options.repetitions):
            zoo = _zoo(options, name, seed)
            with threadpool_limits(limits=1):
                rows += [{"variant": name, "seed": seed, **r} for r in judged(zoo, options.folds)]
    frame = pd.DataFrame(rows)
    title = f"Differences of held-out models, {options.suite if options.home else 'simulated'}"
    report(f"{title}, K = {options.k}", list(summary(frame)), as_json=options.json)


def _zoo(options: Any, name: str, seed: int) -> Zoo:
    variant = parse_variant(name)
    assert isinstance(variant, Variant)
    if options.home:
        evidences = stored_evidence(Path(options.home), options.suite).evidences
        return Zoo(evidences, options.k, variant, seed=seed, types=types_of(evidences))
    if not simulator.available():
        sys.exit("the official scores are not there: expected ../shared/scores, or give --home")
    matrix = simulator.load_matrix()
    models = simulator.reference_models(matrix, seed=seed)
    made = simulator.make_zoo(matrix, models, n_items=options.items, seed=seed)
    statistic = simulator.mean_statistic
    return Zoo(made.evidences, options.k, variant, statistic, made.public, seed, made.types)


def judged(zoo: Zoo, n_folds: int) -> Iterator[dict[str, Any]]:
    """Yield one row per held-out pair, target and kind of interval."""
    held_out = predict_protocol(zoo.evidences, [zoo.variant], "family_lomo", zoo.settings)
    families = {m: f for e in zoo.evidences for m, f in zip(e.models, e.families, strict=True)}
    names = sorted(set(families.values()))
    with_siblings = [(f, f) for f in names if sum(g == f for g in families.values()) > 1]
    strangers = list(combinations(names, 2))
    rng = generator(zoo.seed, "pairs")
    some = rng.choice(len(strangers), min(n_folds, len(strangers)), replace=False)
    for pair in [*with_siblings, *(strangers[i] for i in sorted(some))]:
        yield from _judged_fold(zoo, pair, families, held_out)


def _judged_fold(
    zoo: Zoo, pair: tuple[str, str], families: dict[str, str], held_out: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the pairs of two families, or of the siblings of one."""
    training = [e.only_models(np.array([f not in pair for f in e.families])) for e in zoo.evidences]
    fitted = [refits_of(e, zoo.settings).fits.fitted(zoo.variant) for e in training]
    others = held_out[~held_out["fold"].isin(pair)]
    variant = str(zoo.variant)
    widths = interval_half_widths(others, zoo.types, variant)
    widths = with_pair_widths(widths, others, variant, fitted, training, zoo.types)
    joint = _joint(zoo, training)
    members = [sorted(m for m, f in families.items() if f == name) for name in pair]
    siblings = pair[0] == pair[1]
    pairs = combinations(members[0], 2) if siblings else ((a, b) for a in members[0]
                                                          for b in members[1])  # fmt: skip
    for first, second in pairs:
        one, two = (_observed(zoo, fitted, m) for m in (first, second))
        found = paired_differences(
            fitted, one, two, widths, siblings=siblings, types=zoo.types, joint=joint
        )
        truth = _truth(zoo, first) - _truth(zoo, second)
        spread = [redraw_variance(*redrawn(t, [one[t.task], two[t.task]]))
                  for t in sorted(fitted, key=lambda t: t.task)]  # fmt: skip
        for target, w in target_weights(sorted(zoo.types), zoo.types).items():
            true, d = float(combine(truth, w)), found[target]
            alone = Z * float(np.sqrt(np.array(spread) @ w**2))
            halves = {d.method: d.upper - d.value, "redrawn only": alone}
            for method, half in halves.items():
                yield {
                    "pair": "siblings" if siblings else "strangers", "interval": method,
                    "target": target.partition(":")[0], "covered": abs(d.value - true) <= half,
                    "half_width": 100 * half, "decided": abs(d.value) > half,
                    "wrong": abs(d.value) > half and d.value * true < 0,
                }  # fmt: skip


def _joint(zoo: Zoo, training: list[TaskEvidence]) -> JointCalibration | None:
    """The joint calibration of the training models; the widths of pairs replace its factors."""
    if zoo.variant.calibration not in JOINT:
        return None
    hidden = {f for e in zoo.evidences for f in e.families} - set(training[0].families)
    public = None
    if zoo.public is not None:
        table = zoo.public.table
        public = PublicScores(table[~table["family"].isin(hidden)])
    folds = JointFolds(training, [zoo.variant], public)
    for evidence in training:
        folds.add(refits_of(evidence, zoo.settings), EVERYTHING, MIN_TRAINING_MODELS)
    tasks, data = folds.training(EVERYTHING, zoo.variant)
    return JointCalibration(tuple(tasks), types_of(training), Blup.fit(data), {})


def _observed(zoo: Zoo, fitted: list[Any], model: str) -> dict[str, np.ndarray]:
    found = {}
    for evidence, task in zip(zoo.evidences, fitted, strict=True):
        place = {item: i for i, item in enumerate(evidence.items["item_id"])}
        rows = [place[i] for i in task.selection["item_id"]]
        seen = evidence.outcomes if evidence.observations is None else evidence.observations
        found[evidence.task] = np.asarray(seen[evidence.models.index(model)])[rows]
    return found


def _truth(zoo: Zoo, model: str) -> np.ndarray:
    by_task = {e.task: float(e.full_scores[e.models.index(model)]) for e in zoo.evidences}
    return np.array([by_task[task] for task in sorted(by_task)])


def summary(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield coverage, mean half-width in points, and verdicts by kind of pair and target."""
    for key, part in frame.groupby(["variant", "pair", "target", "interval"], sort=True):
        decided = int(part["decided"].sum())
        yield {
            **dict(zip(("variant", "pair", "target", "interval"), key, strict=True)),
            "n": len(part), "coverage": round(float(part["covered"].mean()), 3),
            "half_width": round(float(part["half_width"].mean()), 2), "decided": decided,
            "wrong_sign": int(part["wrong"].sum()),
        }  # fmt: skip


if __name__ == "__main__":
    main()
