"""Do items chosen by gain per token predict better than as many for the same tokens?

Per-item tasks of the simulated zoo (`tests/support/simulator.py`), whose items get lengths that
spread as lognormal and have nothing to do with how much they tell. Every family is held out in
turn, once with K items per task whatever they cost (`budget`), once for the tokens of K average
items (`tokens`). Both pay the same tokens on average; `spent` says how many, as a share of the
budget.

    python benchmarks/bench_token_budget.py --k 20 --items 400 --repetitions 3
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from measuring import REPOSITORY, arguments, report

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(REPOSITORY / "tests"))

from support import public_matrix, simulator
from support.fits import fit_task

from mteblite.calibrations.variant import Variant
from mteblite.seeds import generator
from mteblite.validation.lomo import Settings, predict_protocol
from mteblite.validation.metrics import validation_metrics

VARIANTS = ("fisher/gp/strat+crossfit",
            "anchor/mean/strat+crossfit", "strat_difficulty/mean/strat+crossfit")  # fmt: skip


def main() -> None:
    options = arguments(__doc__, k=20, items=400, repetitions=1, spread=0.6, tasks=100,
                        variants=",".join(VARIANTS))  # fmt: skip
    if not public_matrix.available():
        sys.exit("the official scores are not there: expected ../shared/scores")
    matrix = public_matrix.load_matrix()
    rows: list[dict[str, Any]] = []
    for seed in range(options.repetitions):
        models = public_matrix.reference_models(matrix, seed=seed)
        zoo = simulator.make_zoo(matrix, models, n_items=options.items, seed=seed)
        names = options.variants.split(",")
        rows += compare(zoo, names, options.k, options.spread, options.tasks, seed)
    report(f"Tokens of K = {options.k}, {options.items} items", summary(rows), as_json=options.json)


def compare(
    zoo: simulator.Zoo, names: list[str], k: int, spread: float, n_tasks: int, seed: int
) -> list[dict[str, Any]]:
    """Rows of both ways, by variant."""
    evidences = [e for e in zoo.evidences if e.kind == "per_item" and len(e.items) > 2 * k]
    evidences = evidences[:n_tasks]
    types = {e.task: e.task_type for e in evidences}
    costs = {
        e.task: generator(seed, e.task, "lengths").lognormal(sigma=spread, size=len(e.items))
        for e in evidences
    }
    found = []
    for by_token in (False, True):
        settings = Settings(
            {e.task: k for e in evidences}, seed, token_costs=costs, by_token=by_token
        )
        frame = predict_protocol(evidences, names, "family_lomo", settings)
        for name in names:
            metrics = validation_metrics(frame[frame["variant"] == name], types)
            mae = metrics[metrics["metric"] == "mae"].set_index("target")["value"]
            of_tasks = mae[mae.index.str.startswith("task:")]
            variant, shares, sizes = Variant.parse(name), [], []
            for e in evidences:
                paid = costs[e.task] if by_token else None
                chosen = fit_task(e, variant, k, (seed,), costs=paid).selection["item_id"]
                places = [int(i[1:]) for i in chosen]
                shares.append(costs[e.task][places].sum() / (k * costs[e.task].mean()))
                sizes.append(len(places))
            found.append({
                "variant": name, "allocation": "tokens" if by_token else "budget",
                "macro_mae": 100 * float(mae["macro"]), "task_mae": 100 * float(of_tasks.mean()),
                "items": float(np.mean(sizes)), "spent": float(np.mean(shares)),
            })  # fmt: skip
    return found


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over repetitions, of errors with the range."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["variant"], row["allocation"]), []).append(row)
    found = []
    for (variant, allocation), members in sorted(groups.items()):
        line: dict[str, Any] = {"variant": variant, "allocation": allocation}
        for name in ("macro_mae", "task_mae", "items", "spent"):
            values = [m[name] for m in members]
            line[name] = f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
        found.append(line)
    return found


if __name__ == "__main__":
    main()
