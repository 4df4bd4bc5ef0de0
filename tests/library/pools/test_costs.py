"""Token costs of pools, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mteblite.pools.costs import item_tokens, pool_costs
from mteblite.pools.pool import Pool


def pairs(n: int = 60, words: int = 3) -> Pool:
    """Pairs of texts of their own, `words` and 2 * `words` long."""
    texts = []
    for i in range(n):
        texts += [" ".join([f"a{i}"] * words), " ".join([f"b{i}"] * (2 * words))]
    rows = np.arange(n)
    ids = [f"i{i:03d}" for i in rows]
    items = pd.DataFrame(
        {"item_id": ids, "hf_subset": "default", "split": "test", "stratum": "", "gold": 0.5,
         "pool_weight": 1 / n}
    )  # fmt: skip
    frame = pd.DataFrame({"item_id": ids, "first_row": 2 * rows, "second_row": 2 * rows + 1})
    meta = {"task": "T", "task_type": "STS"}
    return Pool(meta, pd.DataFrame({"text": texts, "prompt_type": ""}), items, {"pairs": frame})


def queries(n: int = 50) -> Pool:
    """Queries of 2 words, each with one document of 10 words of its own, and one shared of 100."""
    texts = [f"q{i} x" for i in range(n)] + [" ".join([f"d{i}"] * 10) for i in range(n)]
    texts.append(" ".join(["s"] * 100))
    cell = {"split": "test", "hf_subset": "default"}
    ids = [f"i{i:03d}" for i in range(n)]
    items = pd.DataFrame({"item_id": ids, **cell, "stratum": "", "gold": 1.0, "pool_weight": 1 / n})
    asked = pd.DataFrame({"item_id": ids, "query_id": ids, **cell, "query_row": np.arange(n)})
    documents = pd.DataFrame(
        {"doc_id": [*(f"d{i}" for i in range(n)), "s"], **cell,
         "text_row": np.arange(n, 2 * n + 1), "shared": [False] * n + [True]}
    )  # fmt: skip
    listed = pd.DataFrame(
        {"item_id": ids * 2, "query_id": ids * 2, "doc_id": [*(f"d{i}" for i in range(n))]
         + ["s"] * n}
    )  # fmt: skip
    frames = {"queries": asked, "documents": documents, "candidates": listed}
    meta = {"task": "T", "task_type": "Retrieval"}
    return Pool(meta, pd.DataFrame({"text": texts, "prompt_type": ""}), items, frames)


def test_a_pair_costs_its_two_texts_and_shares_nothing():
    found = pool_costs(pairs(), None)
    assert found.item_tokens == pytest.approx(9.0)
    assert found.shared_tokens == pytest.approx(0.0)
    assert found.n_tokens == 9 * 60
    assert item_tokens(pairs(), None)["tokens"].tolist() == [9] * 60


def test_long_texts_are_cut():
    assert pool_costs(pairs(words=10), 8).item_tokens == pytest.approx(16.0)


def test_a_query_brings_its_documents_and_shared_ones_count_once():
    found = pool_costs(queries(), None)
    assert found.item_tokens == pytest.approx(12.0)
    assert found.shared_tokens == pytest.approx(100.0)
    assert item_tokens(queries(), None)["tokens"].tolist() == [12] * 50


def test_a_pool_of_one_item_costs_all_it_has():
    assert pool_costs(pairs(1), None).item_tokens == pytest.approx(9.0)
