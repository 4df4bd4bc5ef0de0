"""When the daemon runs a partition by itself: an input has a new data version, not a new time."""

import dagster as dg


def when_inputs_change(tolerated: list[str]) -> dg.AutomationCondition:
    """Return the condition of every stage asset.

    Unlike `eager()` it starts from an empty graph, ignores materializations whose data version
    is the old one, and waits for a running upstream, so an unchanged result stops the wave.

    Args:
        tolerated: upstream assets of which some partitions may be missing for good (a model
            that failed on one task must not block the task for ever).
    """
    condition = dg.AutomationCondition
    missing = condition.any_deps_match(condition.missing())
    if tolerated:
        missing = missing.ignore(dg.AssetSelection.assets(*tolerated))
    trigger = (
        condition.missing().newly_true()
        | condition.any_deps_match(condition.data_version_changed())
        | (condition.code_version_changed() & ~condition.missing())
    )
    return (
        trigger.since(condition.newly_requested() | condition.newly_updated())
        & ~missing
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    ).with_label("an input's data version changed, or the partition is missing")


def reports_condition() -> dg.AutomationCondition:
    """Return the condition of the dbt models: any table that they read has new content.

    Partitions may be missing for good here (a suite that nobody has built), so none is waited for.
    """
    condition = dg.AutomationCondition
    trigger = condition.missing().newly_true() | condition.any_deps_match(
        condition.data_version_changed()
    )
    return (
        trigger.since(condition.newly_requested() | condition.newly_updated())
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    ).with_label("a stage table has new content")
