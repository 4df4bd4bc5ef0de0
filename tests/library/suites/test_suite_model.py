"""Names of models: variants, families, what is refused."""

from __future__ import annotations

import pytest

from mteblite.suites.suite_model import SuiteModel, checkpoint_name, mteb_name


@pytest.mark.parametrize(
    ("name", "base", "dim", "norm"),
    [
        ("org/model", "org/model", None, False),
        ("org/model+norm", "org/model", None, True),
        ("org/model@dim=128", "org/model", 128, True),
        ("org/model+norm@dim=128", "org/model", 128, True),
        ("org/model@dim=128+norm", "org/model", 128, True),
        ("runs/merge+lora", "runs/merge+lora", None, False),
        ("runs/epoch@3", "runs/epoch@3", None, False),
        ("package:minilm-l6+norm", "package:minilm-l6", None, True),
    ],
)
def test_suffixes_make_variants_of_a_base(
    name: str, base: str, dim: int | None, norm: bool
) -> None:
    spec = SuiteModel.named(name, "f")
    assert (spec.base, spec.dim, spec.norm) == (base, dim, norm)


def test_variants_are_published_under_their_checkpoint() -> None:
    for name in ("org/m", "org/m+norm", "org/m@dim=64", "org/m+task-prompts+norm"):
        assert checkpoint_name(name) == "org/m"


def test_a_prompt_strategy_is_no_model_that_somebody_published_scores_of() -> None:
    assert SuiteModel.named("m", "f").deviation == ""
    assert SuiteModel.named("m+norm", "f").deviation == "+norm"
    named, given = (
        SuiteModel.named("m+no-prompts", "f"),
        SuiteModel.named("m", "f", prompt_strategy="none"),
    )
    assert named.deviation == given.deviation == "none"


def test_fields_and_suffixes_mean_the_same_variant() -> None:
    named = SuiteModel.named("m@dim=64", "f")
    given = SuiteModel.named("m-64", "f", normalize=True, truncate_dim=64)
    assert named.variant == given.variant == "@dim=64"
    assert (
        SuiteModel.named("m", "f", normalize=True).variant
        == SuiteModel.named("m+norm", "f").variant
    )


@pytest.mark.parametrize(
    "name", ["", "a|b", "a b", "../up", "a/../b", "a...b", "-a", "a@dims=3", "a@dim=x", "package:"]
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="model name"):
        SuiteModel.named(name, "f")


def test_bad_specs_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="family"):
        SuiteModel.named("m", "")
    with pytest.raises(ValueError, match=r"model 'm': role: .*'reference' or 'candidate'"):
        SuiteModel.named("m", "f", role="judge")
    with pytest.raises(ValueError, match="several dimensions"):
        SuiteModel.named("m@dim=64", "f", truncate_dim=32)
    with pytest.raises(ValueError, match="at least 1"):
        SuiteModel.named("m@dim=0", "f")
    with pytest.raises(ValueError, match="cannot have a path"):
        SuiteModel.named("package:x", "f", path="somewhere")


def test_names_for_mteb_have_an_organisation() -> None:
    assert mteb_name("package:minilm") == "package/minilm"
    assert mteb_name("merge-1") == "local/merge-1"
    assert mteb_name("org/model+norm") == "org/model+norm"
