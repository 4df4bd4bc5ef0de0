"""The reference models that the published lite suites kept, from made-up scores."""

from __future__ import annotations

import pandas as pd
import pytest

from mteblite.reference_scores.pruning import prune_families

# Kept models (best, median, worst) and how many the family had; single models are families.
ENGLISH = {
    "A-v3@6750": (["A-lin0.6", "A-lin0.5", "A-ties-d0.1-l0.5"], 5),
    "AS3": (["AS3-dareties-p0.9-l1.0", "AS3-ties-d0.3-l1.0", "AS3-ties-d0.3-l0.5"], 4),
    "AV2": (["AV2-dareties-p0.9-l1.0", "AV2-lin1.0", "AV2-lin0.5"], 6),
    "W": (["W-A0.7-S3-0.3-l0.5"], 1),
    "qwen3-0.6b": (["qwen3-0.6b", "qwen3-0.6b+norm"], 2),
    "v1-F/P": (["F-lin1.0", "F-lin0.5", "F-ties-d0.1-l0.5"], 7),
    "v4": (["V-lin0.7", "S-lin0.5", "V-ties-d0.1-l0.5"], 5),
    "v5": (["S5-lin0.5", "V5-ties-d0.3-l0.7", "V5-ties-d0.1-l0.5"], 5),
}
ARABIC = {
    "A-v3@6750": (["A-dare-p0.9-l1.0", "A-lin0.6", "A-lin0.5"], 3),
    "AS3": (["AS3-dareties-p0.9-l1.0", "AS3-ties-d0.3-l1.0", "AS3-ties-d0.3-l0.5"], 3),
    "AV2": (["AV2-dareties-p0.9-l1.0", "AV2-lin1.0", "AV2-lin0.5"], 3),
    "FV": (["FV-ties-d0.1-l0.5", "FV-ties-d0.3-l0.7"], 2),
    "Vq": (["Vq-lin0.6", "Vq-lin0.4", "Vq-lin0.7"], 3),
    "W": (["W-A0.7-V2-0.3-l0.5", "W-F0.7-V0.3-l0.7", "W-A0.7-S3-0.3-l0.5"], 3),
    "qwen3-0.6b": (["qwen3-0.6b", "qwen3-0.6b+norm"], 2),
    "v1-F/P": (["F-lin1.0", "F-lin0.4", "F-lin0.5"], 3),
    "v4": (["V-lin1.0", "V-lin0.5", "V-lin0.1"], 3),
    "v5": (["V5-lin1.0", "S5-lin0.5", "V5-lin0.7"], 3),
}
BOTH = ["all-MiniLM-L6-v2", "bge-m3", "e5-base-v2", "embeddinggemma-300m", "multilingual-e5-base",
        "multilingual-e5-small", "qwen3-4b"]  # fmt: skip
MORE_ENGLISH = [
    "GIST-small-Embedding-v0", "LaBSE", "UAE-Large-V1", "all-MiniLM-L12-v2", "all-mpnet-base-v2",
    "arctic-embed-l", "arctic-embed-m-v1.5", "arctic-embed-xs", "bge-base-en-v1.5",
    "bge-large-en-v1.5", "bge-small-en-v1.5", "e5-large-v2", "e5-small-v2", "gte-large",
    "gte-small", "multilingual-e5-large", "mxbai-embed-large-v1",
    "paraphrase-multilingual-mpnet-base-v2",
]  # fmt: skip
MORE_ARABIC = ["LaBSE", "multilingual-e5-large", "paraphrase-multilingual-MiniLM-L12-v2",
               "paraphrase-multilingual-mpnet-base-v2"]  # fmt: skip


def made_up(kept: list[str], size: int) -> dict[str, float]:
    """Scores of a family: the kept ones best, median and worst, the others in between."""
    if size <= 3:
        return {name: 0.6 - 0.1 * place for place, name in enumerate(kept)}
    best, median, worst = kept
    below = (size - 1) // 2 - 1  # between worst and median
    scores = {best: 0.7, median: 0.5, worst: 0.3}
    scores |= {f"{worst} other {n}": 0.31 + 0.01 * n for n in range(below)}
    scores |= {f"{best} other {n}": 0.51 + 0.01 * n for n in range(size - 3 - below)}
    return scores


@pytest.mark.parametrize(
    ("families", "singles", "n_kept", "n_families"),
    [
        (ENGLISH, BOTH, 28, 15),
        (ENGLISH, [*BOTH, *MORE_ENGLISH], 46, 33),
        (ARABIC, [*BOTH, *MORE_ARABIC], 39, 21),
    ],
    ids=["eng", "eng-super", "ara-super"],
)
def test_the_published_reference_models(families, singles, n_kept, n_families):
    listed = {**families, **{name: ([name], 1) for name in singles}}
    rows, family_of = [], {}
    for family, (kept, size) in listed.items():
        scores = made_up(kept, size)
        assert len(scores) == size
        family_of |= dict.fromkeys(scores, family)
        rows += [(m, t, s) for m, s in scores.items() for t in ("A", "B")]
    table = prune_families(pd.DataFrame(rows, columns=["model", "task", "main_score"]), family_of)
    stay = table[table["kept"]]
    assert (len(stay), stay["family"].nunique()) == (n_kept, n_families)
    by_family = stay.groupby("family")
    assert {f: set(g["model"]) for f, g in by_family} == {f: set(k) for f, (k, _) in listed.items()}
    assert by_family["n_in_family"].first().to_dict() == {f: n for f, (_, n) in listed.items()}
