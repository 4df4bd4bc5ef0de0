"""Tiny sentence-transformers folders and tiny mteb tasks, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

WORDS = [f"word{i}" for i in range(200)]
QUERIES = [f"word{i} word{i + 1}" for i in range(6)]
DOCUMENTS = [f"word{i} word{i + 1} word{i + 2}" for i in range(12)]


def _static_folder(
    folder: Path,
    seed: int = 0,
    dim: int = 8,
    prompts: dict[str, str] | None = None,
    default_prompt: str | None = None,
) -> Path:
    """Save a static model; words are rows of random weights, so a mean of words is its text."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate([*WORDS, "query", "passage", ":", "[UNK]"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    weights = np.random.default_rng(seed).normal(size=(len(vocabulary), dim)).astype(np.float32)
    module = StaticEmbedding(tokenizer, embedding_weights=weights)
    model = SentenceTransformer(
        modules=[module], prompts=prompts, default_prompt_name=default_prompt, device="cpu"
    )
    model.save(str(folder), create_model_card=False)
    return folder


def _bert_folder(folder: Path, max_seq_length: int = 16) -> Path:
    """Save a one-layer BERT with random weights and mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64,
    )  # fmt: skip
    plain = folder.with_name(folder.name + "-plain")
    BertModel(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    transformer = Transformer(str(plain), max_seq_length=max_seq_length)
    SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu").save(
        str(folder), create_model_card=False
    )
    return folder


@pytest.fixture(scope="session")
def static_folder() -> Callable[..., Path]:
    """`static_folder(folder, seed, dim, prompts, default_prompt)` saves a static model."""
    return _static_folder


@pytest.fixture(scope="session")
def bert_folder() -> Callable[..., Path]:
    """`bert_folder(folder, max_seq_length=16)` saves a tiny BERT."""
    return _bert_folder


def _metadata(name: str, task_type: str, main_score: str) -> Any:
    from mteb.abstasks.task_metadata import TaskMetadata

    return TaskMetadata(
        name=name, description="Made for a test.", reference=None, type=task_type,
        dataset={"path": "made/for-a-test", "revision": "1"}, category="t2t", modalities=["text"],
        eval_splits=["test"], eval_langs=["eng-Latn"], main_score=main_score, date=None,
        domains=None, task_subtypes=None, license=None, annotations_creators=None, dialect=None,
        sample_creation=None, bibtex_citation="",
    )  # fmt: skip


@pytest.fixture(scope="session")
def tiny_tasks() -> Any:
    """Classes of tiny mteb tasks, `retrieval` and `sts`; their data is already in memory."""
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval, AbsTaskSTS

    class TinyRetrieval(AbsTaskRetrieval):
        metadata = _metadata("TinyRetrieval", "Retrieval", "ndcg_at_10")

        def load_data(self, **_: object) -> None:
            corpus = [{"id": f"d{i}", "title": "", "text": t} for i, t in enumerate(DOCUMENTS)]
            corpus[3]["title"] = "word150"
            queries = [{"id": f"q{i}", "text": t} for i, t in enumerate(QUERIES)]
            self.dataset = {"default": {"test": {
                "corpus": Dataset.from_list(corpus), "queries": Dataset.from_list(queries),
                "relevant_docs": {f"q{i}": {f"d{i}": 1} for i in range(len(QUERIES))},
                "top_ranked": None,
            }}}  # fmt: skip
            self.data_loaded = True

    class TinySTS(AbsTaskSTS):
        metadata = _metadata("TinySTS", "STS", "cosine_spearman")

        def load_data(self, **_: object) -> None:
            rows = [
                {"sentence1": a, "sentence2": b, "score": float(i % 5)}
                for i, (a, b) in enumerate(zip(QUERIES * 2, DOCUMENTS, strict=True))
            ]
            self.dataset = {"test": Dataset.from_list(rows)}
            self.data_loaded = True

    return SimpleNamespace(retrieval=TinyRetrieval, sts=TinySTS)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mteb's registry as facts, so that mteb is imported once."""
    from mteblite_resources.mteb_registry import registry_facts

    folder = tmp_path_factory.mktemp("registry")
    registry_facts(folder)
    return folder
