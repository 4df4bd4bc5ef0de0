"""Full scores of public models: every cell or no score, and whose relatives they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mteblite.reference_scores.public_models import (
    full_scores_of,
    joint_scores,
    public_families,
    usable,
)
from mteblite.sample.models.catalog import PUBLIC_PARENTS

NEEDED = pd.DataFrame(
    [("A", "test", "en"), ("A", "test", "ar"), ("B", "dev", "default")],
    columns=["task", "split", "hf_subset"],
)


def cells(*rows: tuple[str, str, str, str, float], **texts: str) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["task", "model", "split", "hf_subset", "main_score"])
    base = {"revision": "r", "mteb_version": "2.1.0", "registered": True, "repaired": "",
            "refused": "", "noted": ""}  # fmt: skip
    return frame.assign(**{**base, **texts})


def test_a_full_score_is_the_mean_over_all_needed_cells_and_nothing_else() -> None:
    found = full_scores_of(
        cells(
            ("A", "m", "test", "en", 0.5), ("A", "m", "test", "ar", 0.3),
            ("A", "m", "test", "de", 0.9), ("B", "m", "dev", "default", 0.7),
            ("B", "m", "test", "default", 0.1), ("C", "m", "test", "en", 0.1),
        ),
        NEEDED,
    )  # fmt: skip
    assert found[["task", "model"]].to_numpy().tolist() == [["A", "m"], ["B", "m"]]
    assert found["main_score"].tolist() == pytest.approx([0.4, 0.7])


def test_a_model_that_lacks_a_cell_does_not_enter_the_task() -> None:
    found = full_scores_of(cells(("A", "m", "test", "en", 0.5)), NEEDED)
    assert found.empty
    assert full_scores_of(cells(), NEEDED).empty


def test_a_cell_without_a_number_makes_the_score_none() -> None:
    found = full_scores_of(
        cells(("A", "m", "test", "en", 0.5), ("A", "m", "test", "ar", np.nan)), NEEDED
    )
    assert np.isnan(found["main_score"].item())
    assert usable(found).empty


def test_texts_of_the_cells_are_joined() -> None:
    table = cells(("A", "m", "test", "en", 0.5), ("A", "m", "test", "ar", 0.3))
    table["revision"] = ["b", "a"]
    table["refused"] = ["", "exact zero"]
    found = full_scores_of(table, NEEDED)
    assert found["revision"].item() == "a,b"
    assert found["mteb_version"].item() == "2.1.0"
    assert found["refused"].item() == "exact zero"
    assert usable(found).empty


def test_fine_tunes_belong_to_the_family_of_their_nearest_ancestor_in_the_suite() -> None:
    parents = {"child": "base", "grandchild": "child", "base": "root", "loop1": "loop2",
               "loop2": "loop1", "cousin": "root"}  # fmt: skip
    names = ["grandchild", "child", "base", "cousin", "alone", "loop1"]
    found = public_families(names, parents, {"base": "the family", "child": "child's own"})
    assert found == {
        "grandchild": "child's own", "child": "child's own", "base": "the family",
        "cousin": "root", "alone": "alone", "loop1": "loop2",
    }  # fmt: skip


def test_ancestors_hide_with_the_family_that_comes_from_them() -> None:
    """`parent` made one family of the suite, `root` two; `mine` and `theirs` are the suite's."""
    parents = {"mine": "parent", "parent": "root", "theirs": "root", "sister": "parent",
               "cousin": "root", "loop1": "loop2", "loop2": "loop1"}  # fmt: skip
    ours = {"mine": "f", "theirs": "g", "loop1": "h"}
    names = ["parent", "sister", "root", "cousin", "alone", "loop2"]
    table = cells(*[("B", name, "dev", "default", 0.5) for name in names])
    found = joint_scores(full_scores_of(table, NEEDED), parents, ours)
    assert dict(zip(found["model"], found["family"], strict=True)) == {
        "parent": "f", "sister": "f", "cousin": "root", "alone": "alone", "loop2": "h",
    }  # fmt: skip


def test_public_checkpoints_hide_with_the_packaged_models_that_were_made_of_them() -> None:
    minilm, e5 = "sentence-transformers/all-MiniLM-L6-v2", "intfloat/multilingual-e5-small"
    table = cells(*[("B", name, "dev", "default", 0.5) for name in (minilm, e5, "alone")])
    ours = {"package:minilm-l6": "minilm-l6", "package:multilingual-e5-small-q4-64d": "e5"}

    def family_by_name(ours: dict[str, str]) -> dict[str, str]:
        found = joint_scores(full_scores_of(table, NEEDED), PUBLIC_PARENTS, ours)
        return dict(zip(found["model"], found["family"], strict=True))

    assert family_by_name(ours) == {minilm: "minilm-l6", e5: "e5", "alone": "alone"}
    # With a family for each kind of change, the checkpoint is of none of them.
    several = ours | {"package:minilm-l6-cls": "minilm-l6-pooling"}
    assert family_by_name(several) == {e5: "e5", "alone": "alone"}
