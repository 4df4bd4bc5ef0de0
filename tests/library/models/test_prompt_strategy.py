"""Prompt strategies: which prompts are left, and that they reach texts, addresses, identities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import tiny_suite

from mteblite.models.model_identity import identify, result_revision
from mteblite.models.prompt_strategy import apply_strategy, prompts_for
from mteblite.models.running_models import facts_name
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.address import literal_prompt

TYPES = ("Retrieval", "STS", "Classification")
PROMPTS = {
    "SciFact-query": "claim: ",
    "Banking77Classification": "intent: ",
    "Retrieval-query": "search: ",
    "STS": "same: ",
    "query": "q: ",
    "document": "d: ",
}


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        ("task", {"SciFact-query", "Banking77Classification"}),
        ("category", {"Retrieval-query", "STS", "query", "document"}),
        ("none", set()),
    ],
)
def test_prompts_that_a_strategy_leaves(strategy: str, kept: set[str]) -> None:
    assert set(prompts_for(PROMPTS, strategy, TYPES)) == kept
    assert prompts_for(None, strategy, TYPES) == {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_suite.write_model(tmp_path_factory.mktemp("model") / "m", "m", 0.1)


def _wrapped(folder: Path, strategy: str) -> Any:
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    inner = SentenceTransformerEncoderWrapper(SentenceTransformer(str(folder), device="cpu"))
    inner.model_prompts = dict(PROMPTS)
    if strategy:
        apply_strategy(inner, strategy)
    return inner


def _instructed(folder: Path, strategy: str) -> Any:
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    inner = InstructSentenceTransformerModel(
        str(folder), "x", device="cpu", apply_instruction_to_passages=False,
        instruction_template=lambda instruction, kind: f"Instruct: {instruction}\nQuery:",
    )  # fmt: skip
    if strategy:
        apply_strategy(inner, strategy)
    return inner


@pytest.mark.parametrize(
    ("strategy", "query", "document"),
    [
        ("", "claim: ", "d: "),
        ("task", "claim: ", ""),
        ("category", "search: ", "d: "),
        ("none", "", ""),
    ],
)
def test_prompt_dictionaries(folder: Path, strategy: str, query: str, document: str) -> None:
    import mteb

    inner, task = _wrapped(folder, strategy), mteb.get_task("SciFact").metadata
    assert literal_prompt(inner, task, "query")[0] == query
    assert literal_prompt(inner, task, "document")[0] == document


def test_instructions_of_tasks_and_of_categories(folder: Path) -> None:
    import mteb

    task = mteb.get_task("Banking77Classification").metadata
    search = mteb.get_task("SciFact").metadata
    for strategy in ("", "task"):
        inner = _instructed(folder, strategy)
        assert task.prompt in literal_prompt(inner, task, "")[0]
        assert search.prompt["query"] in literal_prompt(inner, search, "query")[0]
    inner = _instructed(folder, "category")
    assert literal_prompt(inner, task, "")[0] == "Instruct: Classify user passages.\nQuery:"
    assert "Retrieve text based on user query." in literal_prompt(inner, search, "query")[0]
    assert literal_prompt(inner, search, "document")[0] == ""
    assert literal_prompt(_instructed(folder, "none"), task, "")[0] == ""


def test_strategy_is_part_of_the_models_identity_and_not_of_its_weights(
    folder: Path, tmp_path: Path
) -> None:
    plain = SuiteModel.named("m", "f", path=str(folder))
    found = {}
    for strategy in (None, "task", "category", "none"):
        spec = SuiteModel.named("m", "f", path=str(folder), prompt_strategy=strategy)
        identity = identify(spec, tmp_path)
        assert identity.base_fingerprint == identify(plain, tmp_path).base_fingerprint
        revision = result_revision(spec, identity, None)
        found[strategy] = (identity.fingerprint, revision, facts_name(None, spec.strategy))
    for column in zip(*found.values(), strict=True):
        assert len(set(column)) == 4
    assert found[None][0] == identify(plain, tmp_path).fingerprint


def test_suffix_says_the_same_as_the_option() -> None:
    for suffix, strategy in (("task", "task"), ("category", "category"), ("no", "none")):
        spec = SuiteModel.named(f"org/m+norm+{suffix}-prompts", "f")
        assert (spec.base, spec.strategy, spec.norm) == ("org/m", strategy, True)
    with pytest.raises(ValueError, match="several prompt strategies"):
        SuiteModel.named("org/m+task-prompts", "f", prompt_strategy="none")
    with pytest.raises(ValueError, match="packaged model"):
        SuiteModel.named("package:minilm-l6", "f", prompt_strategy="none")
    with pytest.raises(ValueError, match="'task', 'category' or 'none'"):
        SuiteModel.named("org/m", "f", prompt_strategy="best")
