"""The rules by which pools are drawn, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pool_rules(caps: Mapping[str, Any], max_tokens: int | None) -> str:
    """Return the rules as sentences, given the caps by name and the token cap of the suite."""

    def up_to(name: str, what: str) -> str:
        return f"all {what}" if caps[name] is None else f"up to {caps[name]} {what}"

    search = (
        "every document of the corpus is a candidate of every query"
        if caps["bm25_top"] is None or caps["random_documents"] is None
        else f"a query's candidates are the BM25 top {caps['bm25_top']} of the whole corpus "
        f"(Okapi, k1 = 0.9, b = 0.4), {up_to('max_relevant', 'relevant documents')}, and "
        f"{caps['random_documents']} random documents shared by all queries"
    )
    tokens = "the model's own limit" if max_tokens is None else f"{max_tokens} tokens"
    return (
        f"Each task gives {up_to('max_items', 'items')} of its evaluation split, split evenly over "
        f"its subsets (seed {caps['seed']}). In retrieval {search}; rerankings keep their own "
        "lists. Classification and clustering are stratified by label, pair classification is "
        "balanced and reweighted to the label prior, STS is stratified by five gold bins. "
        f"Texts are cut at {tokens}."
    )
