"""Which part of a method lowers the error? Selection x statistic x calibration x allocation.

Every cell is validated by leave-one-family-out with the same item draws, on the simulated zoo or on
the suite of a home (`real_zoo.py` makes one). A cell stands beside its control: random items with
the same statistic, calibration and allocation, so that only the selection differs. Differences are
paired by draw.

    python benchmarks/study.py --draws 20                             # simulated zoo
    python benchmarks/study.py --draws 20 --home HOME --suite real    # real tasks

`--chosen 1` also runs the nested choice of preset `best`. Errors are in points of the macro mean.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from measuring import REPOSITORY, arguments, report

sys.path.insert(0, str(REPOSITORY / "tests"))
from stored_evidence import stored_evidence
from support import public_matrix, simulator

from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.selections.sharing import Sharing
from mteblite.task_types.scoring import set_statistic
from mteblite.validation.agreement import kendall_tau
from mteblite.validation.fold_counts import counts_of_fold
from mteblite.validation.folds import family_by_model
from mteblite.validation.joint_folds import PublicScores
from mteblite.validation.lomo import Settings, predict_protocol
from mteblite.validation.metrics import score_matrices
from mteblite.validation.nested import predict_nested
from mteblite.validation.presets import find_preset
from mteblite.validation.targets import combine, macro_weights

SELECTIONS = ("random/strat", "strat/strat", "strat_difficulty/strat_difficulty", "anchor/strat",
              "anchor/anchorset", "best_draw/best_draw", "anchor/best_draw")  # fmt: skip
"""Selections of per-item tasks and of set metrics, beside the control."""
CONTROL = "random/random"
ALLOCATIONS = ("equal", "budget")
STATISTICS = ("official", "surrogate")
CELL = ["allocation", "calibration", "statistic", "selection"]


@dataclass(frozen=True)
class Source:
    """What a study runs on; `statistics` are the set statistics by name."""

    evidences: list[TaskEvidence]
    item_tokens: dict[str, float]
    public: PublicScores | None
    statistics: dict[str, Any]


def main() -> None:
    """Print a row per cell."""
    asked = arguments(
        __doc__, home="", suite="real", k=20, draws=20, first=0, zoos=2, items=400, chosen=0,
        selections=",".join(SELECTIONS), calibrations="linear,offset,blup", save="",
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, source in _sources(asked):
        for draw in range(asked.first, asked.first + asked.draws):
            started = time.perf_counter()
            rows += _draw(source, asked, draw, name)
            print(f"{name}, draw {draw}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
            if asked.save:
                pd.DataFrame(rows).to_parquet(asked.save)
    title = f"Macro error over {asked.draws} item draws of {asked.home or 'simulated zoos'}"
    report(title, table(pd.DataFrame(rows)), as_json=asked.json)


def _sources(asked: Any) -> Iterator[tuple[str, Source]]:
    if asked.home:
        stored = stored_evidence(Path(asked.home), asked.suite)
        names = {"official": set_statistic, "surrogate": set_statistic}
        yield asked.suite, Source(stored.evidences, stored.item_tokens, None, names)
        return
    matrix = public_matrix.load_matrix()
    for seed in range(asked.zoos):
        models = public_matrix.reference_models(matrix, seed=seed)
        zoo = simulator.make_zoo(matrix, models, n_items=asked.items, seed=seed)
        names = {"official": simulator.mean_statistic, "surrogate": simulator.surrogate_statistic}
        yield f"zoo {seed}", Source(zoo.evidences, zoo.costs, zoo.public, names)


def _draw(source: Source, asked: Any, draw: int, name: str) -> list[dict[str, Any]]:
    """Return a row per cell of one item draw."""
    families = family_by_model(source.evidences)
    counts = {e.task: asked.k for e in source.evidences}
    rows = []
    real = bool(asked.home)
    for allocation in ALLOCATIONS:
        for statistic in ("both",) if real else STATISTICS:
            used = source.statistics["official" if real else statistic]
            sharing = Sharing(source.evidences, source.item_tokens, counts, 0, statistic=used)
            budget = counts_of_fold(sharing, families) if allocation == "budget" else None
            settings = Settings(
                counts, draw, source.public, used, random_draws=1, k_of_fold=budget,
                suite=f"{name} {draw}",
            )  # fmt: skip
            refits: dict[str, Any] = {}
            cells = {
                f"{s.replace('/', '/mean/')}{':surrogate' * (real and which == 'surrogate')}"
                f"{'' if c == 'linear' else '+' + c}": (c, which, s)
                for s in (CONTROL, *asked.selections.split(","))
                for c in asked.calibrations.split(",")
                for which in (STATISTICS if real else (statistic,))
            }
            found = predict_protocol(
                source.evidences, list(cells), "family_lomo", settings, refits=refits
            )
            for variant, errors in _errors(found, source.evidences).items():
                of_cell = dict(zip(CELL[1:], cells[variant], strict=True))
                rows.append({"draw": f"{name} {draw}", "allocation": allocation} | of_cell | errors)
            if asked.chosen and allocation == "budget" and statistic != "official":
                rows.append(_nested(source, settings, refits, f"{name} {draw}", real))
    return rows


def _nested(
    source: Source, settings: Settings, refits: dict[str, Any], draw: str, real: bool
) -> dict[str, Any]:
    """Return the row of the variants that folds choose from preset `best`."""
    preset = find_preset("best")
    variants = [str(v) if real else str(v).replace(":surrogate", "") for v in preset.variants]
    found, _ = predict_nested(
        source.evidences, list(dict.fromkeys(variants)), settings, refits=refits,
        patience=preset.patience,
    )  # fmt: skip
    errors = next(iter(_errors(found, source.evidences).values()))
    cell = dict.fromkeys(CELL, "nested") | {"allocation": "budget"}
    return {"draw": draw} | cell | errors


def _errors(found: pd.DataFrame, evidences: list[TaskEvidence]) -> dict[str, dict[str, float]]:
    types = types_of(evidences)
    tasks = sorted(types)
    weights = macro_weights(tasks, types)
    errors = {}
    for variant, (predicted, actual, _) in score_matrices(found, tasks).items():
        p, a = combine(predicted, weights), combine(actual, weights)
        known = np.isfinite(p) & np.isfinite(a)
        errors[variant] = {
            "mae": 100 * float(np.abs(p - a)[known].mean()),
            "bias": 100 * float((p - a)[known].mean()),
            "task_mae": 100 * float(np.nanmean(np.abs(predicted - actual))),
            "tau": kendall_tau(p[known], a[known]),
            "models": int(known.sum()),
        }
    return errors


def table(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return means over draws, the spread of single draws, and the difference to the control."""
    control = rows[rows["selection"] == CONTROL].set_index(["draw", *CELL[:3]])["mae"]
    lines = []
    for cell, part in rows.groupby(CELL, sort=True):
        key = pd.MultiIndex.from_frame(part[["draw", *CELL[:3]]])
        gap = part["mae"].to_numpy() - control.reindex(key).to_numpy()
        line = dict(zip(CELL, cell, strict=True))
        line |= {
            "MAE": f"{part['mae'].mean():.2f}",
            "sd of a draw": f"{part['mae'].std():.2f}",
            "minus random": "",
            "task MAE": f"{part['task_mae'].mean():.2f}",
            "tau-b": f"{part['tau'].mean():.3f}",
            "draws": len(part),
        }
        if np.isfinite(gap).all() and len(gap) > 1 and line["selection"] != CONTROL:
            error = gap.std(ddof=1) / len(gap) ** 0.5
            share = gap.mean() / (part["mae"].to_numpy() - gap).mean()
            line["minus random"] = f"{gap.mean():+.2f} ± {error:.2f} ({share:+.0%})"
        lines.append(line)
    return sorted(lines, key=lambda line: (line["allocation"], float(line["MAE"])))


if __name__ == "__main__":
    main()
