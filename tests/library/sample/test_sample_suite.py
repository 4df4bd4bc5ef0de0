"""The packaged suite file agrees with the catalogs of tasks and models."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mteblite.sample.models.catalog import packaged_model
from mteblite.sample.tasks.registry import SAMPLE_TASKS
from mteblite.suites import suite_file
from mteblite.task_types.registry import type_names

PATH = Path(suite_file.__file__).parent / "packaged" / "sample.yaml"


@pytest.fixture(scope="module")
def suite():
    return suite_file.read_suite_file(PATH)


def test_it_lists_every_sample_task_and_all_types_but_summarization(suite):
    assert {task.task for task in suite.tasks} == set(SAMPLE_TASKS)
    types = {SAMPLE_TASKS[task.task].task_type for task in suite.tasks}
    assert types == set(type_names()) - {"Summarization"}


def test_its_models_are_packaged_and_their_families_those_of_the_catalog(suite):
    for model in suite.models:
        assert model.name.startswith("package:")
        assert packaged_model(model.name).family == model.family


def test_it_has_enough_references_in_enough_families_and_two_candidates(suite):
    roles = Counter(model.role for model in suite.models)
    references = [model for model in suite.models if model.role == "reference"]
    assert roles["candidate"] == 2
    assert 14 <= len(references) <= 18
    families = Counter(model.family for model in references)
    assert len(families) >= 8
    assert max(families.values()) <= len(references) // 4  # no family decides alone
    parents = {packaged_model(model.name).parent for model in references}
    assert len(parents) >= 6


def test_its_full_scores_are_own_runs(suite):
    assert suite.reference_scores == ["run"]
    assert suite.k == 20
