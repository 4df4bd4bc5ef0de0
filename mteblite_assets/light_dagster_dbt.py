"""dagster-dbt without importing dbt-core, which costs a second that the UI's start has not got.

dbt runs as a process of its own here. dagster-dbt has a mode for environments where dbt cannot
be imported, with the few enumerations it needs; hiding `dbt.version` for the moment of its import
chooses that mode.
"""

import sys

_hidden = sys.modules.get("dbt.version")
sys.modules["dbt.version"] = None  # type: ignore[assignment]
try:
    from dagster_dbt import (
        DagsterDbtTranslator,
        DagsterDbtTranslatorSettings,
        DbtCliResource,
        DbtProject,
        dbt_assets,
    )
finally:
    if _hidden is None:
        del sys.modules["dbt.version"]
    else:
        sys.modules["dbt.version"] = _hidden

__all__ = [
    "DagsterDbtTranslator",
    "DagsterDbtTranslatorSettings",
    "DbtCliResource",
    "DbtProject",
    "dbt_assets",
]
