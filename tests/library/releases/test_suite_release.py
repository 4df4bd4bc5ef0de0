"""A release as a value: its version, its documents, its scores under a joint calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.releases import small_release

from mteblite.releases.markdown import fractions, points, table
from mteblite.releases.release_card import card
from mteblite.releases.released_task import items_table
from mteblite.releases.selection_sections import family_lines, validation_section
from mteblite.releases.suite_release import SuiteRelease, task_folders
from mteblite.task_types.hidden_labels import label_numbers
from mteblite.task_types.pool_rules import pool_rules


@pytest.fixture(scope="module")
def release() -> SuiteRelease:
    return small_release()


def test_the_version_is_the_content(release: SuiteRelease) -> None:
    assert small_release().version == release.version
    assert release.version == f"{release.suite}-{release.content_hash[:12]}"
    one = release.tasks[0]
    heavier = one.fitted.selection.assign(weight=one.fitted.selection["weight"] * 2)
    others = [
        replace(release, document="other"),
        replace(release, joint="{}"),
        replace(release, max_tokens=256),
        replace(release, headline="mean"),
        replace(release, parts={"SmallSTS": "Whole"}),
        replace(release, versions={**release.versions, "mteb": "0"}),
        replace(release, intervals=release.intervals.assign(half_width=0.5)),
        replace(release, tasks=(replace(one, fitted=replace(one.fitted, selection=heavier)),
                                *release.tasks[1:])),
        replace(release, tasks=release.tasks[1:]),
    ]  # fmt: skip
    assert len({release.version, *(r.version for r in others)}) == len(others) + 1


def test_items_are_in_rank_order_with_weights_parameters_and_hashes(release: SuiteRelease) -> None:
    for task in release.tasks:
        items = items_table(task)
        assert items["rank"].tolist() == list(range(len(items)))
        assert items["item_id"].tolist() == task.fitted.selection["item_id"].tolist()
        assert items["weight"].sum() == pytest.approx(1)
        assert set(items["response_model"]) <= {"linear_gaussian", "two_pl"}
        assert all(len(h) == 32 for hashes in items["text_sha256"] for h in hashes)


def test_labels_become_numbers_that_sort_alike() -> None:
    strata = ["sport > golf", "sport", "art > opera", "art"]
    numbers = label_numbers(strata)
    assert numbers == {"art": "label0", "art > opera": "label0 > label2",
                       "sport": "label3", "sport > golf": "label3 > label1"}  # fmt: skip
    many = [str(n) for n in range(120)]
    renamed = label_numbers(many)
    assert sorted(many) == sorted(many, key=renamed.__getitem__)
    assert len(set(renamed.values())) == 120


def test_labels_of_a_release_are_numbered_everywhere(release: SuiteRelease) -> None:
    for task in release.tasks:
        if task.description.task_type not in ("Classification", "Clustering"):
            continue
        for items in (task.fitted.items, task.pool.items):
            parts = {p for s in items["stratum"] for p in s.split(" > ")}
            assert all(p.startswith("label") for p in parts)


def test_folders_are_plain_and_different() -> None:
    folders = task_folders(["A b", "A-b", "a-B", "../x", "مهمة", "calibrations", "STS12.v2"])
    assert folders["STS12.v2"] == "STS12.v2"
    assert folders["../x"] == "x"
    assert folders["calibrations"] == "calibrations-2"
    assert len({name.lower() for name in folders.values()}) == 7
    assert task_folders(reversed(list(folders))) == folders


def test_the_card_names_every_task_as_a_configuration(release: SuiteRelease) -> None:
    import yaml

    text = card(release, task_folders(t.task for t in release.tasks))
    _, header, body = text.split("---\n", 2)
    configs = {c["config_name"]: c for c in yaml.safe_load(header)["configs"]}
    assert set(configs) == {*(t.task for t in release.tasks), "calibrations", "intervals"}
    assert release.version in body
    assert "mteblite score MODEL --release" in body


def test_families_as_published() -> None:
    kept = pd.DataFrame({
        "model": ["v1", "v2", "v3", "v4", "solo"], "family": ["v"] * 4 + ["solo"],
        "kept": [True, False, True, True, True], "score": [0.1, 0.2, 0.3, 0.4, 0.5],
        "n_in_family": [4, 4, 4, 4, 1],
    })  # fmt: skip
    assert family_lines(kept) == ["- solo: kept solo (of 1)", "- v: kept v4, v3, v1 (of 4)"]


def test_rules_of_pools_with_and_without_caps() -> None:
    caps = {"max_items": 1000, "bm25_top": 30, "max_relevant": 100, "random_documents": 1000,
            "seed": 0}  # fmt: skip
    assert "BM25 top 30" in pool_rules(caps, 512)
    assert "512 tokens" in pool_rules(caps, 512)
    free = pool_rules(dict.fromkeys(caps, None) | {"seed": 0}, None)
    assert "all items" in free
    assert "every document of the corpus" in free


def test_validation_shows_the_chosen_variant_and_baselines_with_intervals() -> None:
    rows = [
        ("family_lomo", v, "macro", "mae", value, 9)
        for v, value in (("a/mean/b", 0.0123), ("random/mean", 0.02), ("x/y/z", 0.5))
    ]
    rows.append(("nested_family_lomo", "nested", "macro", "mae", 0.03, 9))
    names = ["protocol", "variant", "target", "metric", "value", "n_models"]
    metrics = pd.DataFrame(rows, columns=names)
    ends = metrics.assign(lower=0.01, upper=[0.015, np.nan, 0.6, np.nan])
    widths = pd.DataFrame({"target": ["macro"], "half_width": [0.04], "level": [0.9],
                           "interval_method": ["conformal_family"], "n_families": [9]})  # fmt: skip
    text = " ".join(validation_section("a/mean/b", metrics, ends, widths).split())
    assert "| family_lomo | macro | a/mean/b | 1.23 [1.00, 1.50] |" in text
    assert "| random/mean | 2.00 |" in text
    assert "| nested_family_lomo | macro | nested | 3.00 |" in text
    assert "x/y/z" not in text
    assert "| macro | 4.00 | conformal_family | 9 |" in text


def test_markdown() -> None:
    assert table([]) == ""
    assert table([{"a|b": 1, "c": None}]).splitlines()[2].split() == ["|", "1", "|", "-", "|"]
    assert table([{"a": "x|y\nz"}]).splitlines()[2].split() == ["|", "x\\|y", "z", "|"]
    assert (points(0.12345), points(float("nan")), fractions(0.5)) == ("12.35", "-", "0.500")
