"""Lite MTEB benchmarks: score a text-embedding model on a few items, predict its full score.

    import mteblite

    release = mteblite.load_release("sample-release")     # a folder that `mteblite export` wrote
    scores = mteblite.score("path/to/checkpoint", release)
    print(scores.value, scores.lower, scores.upper)       # the predicted headline, a fraction
    mteblite.compare("checkpoint-2", "checkpoint-1", release).differences
    mteblite.released_tasks("sample-release")             # for mteb.evaluate

These names are the public API. Everything else may change between versions. Importing this
package imports neither torch nor mteb. The first call imports them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mteblite.lite_scores.comparison import Comparison as Comparison
    from mteblite.models.encoders import EncodingSettings as EncodingSettings
    from mteblite.releases.release_files import ReleaseError as ReleaseError
    from mteblite.releases.released_tasks import released_tasks as released_tasks
    from mteblite.releases.scoring import Scores as Scores
    from mteblite.releases.scoring import compare as compare
    from mteblite.releases.scoring import load_release as load_release
    from mteblite.releases.scoring import score as score
    from mteblite.releases.suite_release import SuiteRelease as SuiteRelease

_MODULES = {
    "load_release": "releases.scoring",
    "score": "releases.scoring",
    "compare": "releases.scoring",
    "released_tasks": "releases.released_tasks",
    "SuiteRelease": "releases.suite_release",
    "Scores": "releases.scoring",
    "Comparison": "lite_scores.comparison",
    "EncodingSettings": "models.encoders",
    "ReleaseError": "releases.release_files",
}

__all__ = [
    "Comparison",
    "EncodingSettings",
    "ReleaseError",
    "Scores",
    "SuiteRelease",
    "compare",
    "load_release",
    "released_tasks",
    "score",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'mteblite' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"mteblite.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
