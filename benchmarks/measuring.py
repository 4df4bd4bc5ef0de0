"""What every benchmark shares: interleaved repetitions, medians of paired ratios, load, tables.

The machine may be shared, so a number alone says little. Each repetition runs all contenders one
after the other; a ratio is taken inside a repetition and its median reported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))


def arguments(description: str, **defaults: Any) -> argparse.Namespace:
    """Parse `--json` and one option per default, of the default's type."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    return parser.parse_args()


@dataclass
class Taken:
    """Seconds per repetition: of the clock, and of this process's cores (load matters less)."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def interleaved(contenders: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, Taken]:
    """Return what every contender took per repetition; their order alternates."""
    taken = {name: Taken() for name in contenders}
    for repetition in range(repetitions):
        names = list(contenders)
        for name in names if repetition % 2 == 0 else reversed(names):
            wall, cpu = time.perf_counter(), time.process_time()
            contenders[name]()
            taken[name].wall.append(time.perf_counter() - wall)
            taken[name].cpu.append(time.process_time() - cpu)
    return taken


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median over repetitions of above / below."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def report(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows as a markdown table, or as JSON, with the machine and its load."""
    load = [round(x, 1) for x in os.getloadavg()]
    facts = {"cores": os.cpu_count(), "load_1_5_15_min": load}
    if as_json:
        print(json.dumps({"benchmark": title, **facts, "rows": list(rows)}, default=str))
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    print(f"\n### {title}\n\n{facts['cores']} cores, load {load} at the end\n")
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for row in rows:
        print("| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |")


def resident_mib() -> float:
    """Return this process's anonymous resident memory in MiB; mapped files do not count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise OSError("no RssAnon in /proc/self/status: needs Linux 4.5 or newer")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
