"""Every task that the hub stand-in of ../shared serves, with all the subsets it has of it."""

from __future__ import annotations

from typing import Any

SIB200 = [
    *("acm_Arab", "acq_Arab", "aeb_Arab", "ajp_Arab", "apc_Arab", "ars_Arab", "ary_Arab"),
    *("arz_Arab", "eng_Latn"),
]
TASKS: dict[str, dict[str, Any]] = {
    "AJGT.v2": {},
    "AmazonCounterfactualClassification": {"hf_subsets": ["en"]},
    "AskUbuntuDupQuestions": {},
    "BIOSSES": {},
    "Banking77Classification": {},
    "MLQARetrieval": {"hf_subsets": ["ara-ara", "ara-eng", "eng-ara"], "split": "validation"},
    "MassiveIntentClassification": {"hf_subsets": ["ar", "en"]},
    "NTREXBitextMining": {"hf_subsets": ["arb_Arab-eng_Latn", "eng_Latn-arb_Arab"]},
    "NamaaMrTydiReranking": {},
    "RestaurantReviewSentimentClassification.v2": {},
    "SIB200ClusteringS2S": {"hf_subsets": SIB200},
    "STS12": {},
    "STS13": {},
    "STS17": {"hf_subsets": ["ar-ar", "en-ar", "en-en", "es-es"]},
    "STSBenchmark": {},
    "SciFact": {},
    "SummEvalSummarization.v2": {},
    "Tatoeba": {"hf_subsets": ["ara-eng", "arz-eng"]},
    "TweetSentimentExtractionClassification": {},
    "TwentyNewsgroupsClustering.v2": {},
    "XNLI": {"hf_subsets": ["ar", "en"]},
    "XQuADRetrieval": {"hf_subsets": ["ar", "en"], "split": "validation"},
}
"""What a suite file says of a task beside its name."""
