"""Opening real (tiny) models: prompts as mteb's, caps, laziness, mteb's protocol."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mteblite.models.encoders import EncodingSettings, open_encoder
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.model_identity import identify
from mteblite.models.running_models import MtebRunning
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.address import literal_prompt
from mteblite.vectors.store import VectorStore

PROMPTS = {"query": "query : ", "document": "passage : "}
TEXTS = ["word1 word2", "word3", "word4 word5 word6"]


def opened(home: Path, folder: Path, max_tokens: int | None = None, **kwargs: Any) -> StoredEncoder:
    spec = SuiteModel.named(kwargs.pop("name", "m"), "f", path=str(folder), **kwargs)
    return open_encoder(
        spec, identify(spec, home), VectorStore(home / "vectors"), max_tokens, home=home
    )


def by_mteb(folder: Path, texts: list[str], task: Any, prompt_type: Any) -> np.ndarray:
    """What mteb's own wrapper gives for the folder."""
    from datasets import Dataset
    from mteb.models import SentenceTransformerEncoderWrapper
    from torch.utils.data import DataLoader

    wrapper = SentenceTransformerEncoderWrapper(str(folder), device="cpu")
    return np.asarray(
        wrapper.encode(
            DataLoader(Dataset.from_dict({"text": texts}), batch_size=2), task_metadata=task,
            hf_split="test", hf_subset="default", prompt_type=prompt_type, show_progress_bar=False,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        (None, None),
        (PROMPTS, None),
        (PROMPTS, "query"),
        ({"query": "query : ", "passage": "passage : "}, None),
        ({"STS": "query : "}, None),
        ({"TinySTS-query": "word7 ", "query": "query : "}, None),
    ],
)
@pytest.mark.parametrize("kind", ["query", "document", ""])
def test_prompts_are_those_of_mteb(
    tmp_path: Path,
    static_folder: Callable[..., Path],
    tiny_tasks: Any,
    prompts: dict[str, str] | None,
    default: str | None,
    kind: str,
) -> None:
    from mteb.types import PromptType

    folder = static_folder(tmp_path / "m", prompts=prompts, default_prompt=default)
    task = tiny_tasks.sts.metadata
    encoder = opened(tmp_path / "home", folder)
    expected = by_mteb(folder, TEXTS, task, PromptType(kind) if kind else None)
    np.testing.assert_array_equal(encoder.vectors(TEXTS, task, kind), expected)
    # The address spells out the prompt that really made the vector.
    literal = encoder._model.address(task, kind).prompt
    plain = opened(tmp_path / "home", static_folder(tmp_path / "plain"))
    by_hand = plain.vectors([literal + text for text in TEXTS], task)
    np.testing.assert_allclose(encoder.vectors(TEXTS, task, kind), by_hand, rtol=1e-6)


def test_given_prompts_override_the_folders(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    task = tiny_tasks.retrieval.metadata
    own = static_folder(tmp_path / "m", prompts=PROMPTS)
    given = opened(tmp_path / "home", own, prompts={"query": "word9 ", "document": ""})
    plain = opened(tmp_path / "home", static_folder(tmp_path / "plain"))
    np.testing.assert_allclose(
        given.vectors(TEXTS, task, "query"), plain.vectors([f"word9 {t}" for t in TEXTS], task),
        rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_array_equal(
        given.vectors(TEXTS, task, "document"), plain.vectors(TEXTS, task)
    )
    assert given.result_revision != opened(tmp_path / "home", own).result_revision


def test_equal_prompts_share_vectors_across_tasks(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    encoder = opened(tmp_path / "home", static_folder(tmp_path / "m"))
    encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    encoder.vectors(TEXTS, tiny_tasks.retrieval.metadata, "document")
    assert (encoder.counts.encoded, encoder.counts.found) == (3, 3)


def test_stored_vectors_need_no_weights(
    tmp_path: Path,
    static_folder: Callable[..., Path],
    tiny_tasks: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, task = static_folder(tmp_path / "m", prompts=PROMPTS), tiny_tasks.sts.metadata
    first = opened(tmp_path / "home", folder).vectors(TEXTS, task, "query")
    again = opened(tmp_path / "home", folder)

    def loads() -> None:
        raise AssertionError("weights were loaded")

    assert isinstance(again._model, MtebRunning)
    monkeypatch.setattr(again._model, "_load", loads)
    np.testing.assert_array_equal(again.vectors(TEXTS, task, "query"), first)
    assert float(again.similarity(first, first)[1, 1]) == pytest.approx(1)
    with pytest.raises(ModelError, match="weights were loaded"):
        again.vectors(["word99"], task, "query")


def test_the_token_cap_counts_only_where_it_bites(
    tmp_path: Path,
    bert_folder: Callable[..., Path],
    static_folder: Callable[..., Path],
    tiny_tasks: Any,
) -> None:
    task, home = tiny_tasks.sts.metadata, tmp_path / "home"
    folder = bert_folder(tmp_path / "m", max_seq_length=16)
    long = " ".join(f"word{i}" for i in range(30))
    whole = opened(home, folder).vectors([long], task)
    above = opened(home, folder, max_tokens=40)
    np.testing.assert_array_equal(above.vectors([long], task), whole)
    assert above.counts.encoded == 0
    short = " ".join(f"word{i}" for i in range(5))
    capped = opened(home, folder, max_tokens=5)
    np.testing.assert_allclose(
        capped.vectors([long], task), opened(home, folder).vectors([short], task), atol=1e-6
    )
    assert capped.counts.encoded == 1
    static = static_folder(tmp_path / "static")
    np.testing.assert_array_equal(
        opened(home, static, max_tokens=5).vectors([long], task),
        opened(home, static).vectors([short], task),
    )


def test_overwritten_while_running_is_refused(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    folder, task = static_folder(tmp_path / "m", seed=0), tiny_tasks.sts.metadata
    encoder = opened(tmp_path / "home", folder)
    shutil.rmtree(folder)
    static_folder(folder, seed=1)
    with pytest.raises(ValueError, match="model 'm' changed since"):
        encoder.vectors(TEXTS, task)
    renewed = opened(tmp_path / "home", folder)
    assert renewed.identity.fingerprint != encoder.identity.fingerprint
    assert renewed.vectors(TEXTS, task).shape == (3, 8)


def test_registry_models_and_mtebs_protocol(tmp_path: Path, tiny_tasks: Any) -> None:
    import mteb
    from mteb.models.models_protocols import EncoderProtocol

    spec = SuiteModel.named("mteb/baseline-random-encoder", "random")
    store = VectorStore(tmp_path / "vectors")
    encoder = open_encoder(spec, identify(spec, tmp_path), store, 512, home=tmp_path)
    assert isinstance(encoder, EncoderProtocol)
    assert encoder.mteb_model_meta.name == spec.name
    assert encoder.mteb_model_meta.revision == "2-512tokens"
    got = encoder.vectors(TEXTS, tiny_tasks.sts.metadata)
    inner = mteb.get_model(spec.name)
    from datasets import Dataset
    from torch.utils.data import DataLoader

    loader = DataLoader(Dataset.from_dict({"text": TEXTS}), batch_size=2)
    expected = inner.encode(
        loader, task_metadata=tiny_tasks.sts.metadata, hf_split="test", hf_subset="default"
    )
    np.testing.assert_array_equal(got, expected)
    # Its prompts are its own business, so its vectors are kept per task.
    encoder.vectors(TEXTS, tiny_tasks.retrieval.metadata)
    assert encoder.counts.encoded == 6


def test_remote_code_needs_permission(tmp_path: Path, tiny_tasks: Any) -> None:
    spec = SuiteModel.named("nomic-ai/nomic-embed-text-v1.5", "nomic", revision="x")
    encoder = open_encoder(
        spec, identify(spec, tmp_path), VectorStore(tmp_path / "v"), home=tmp_path
    )
    with pytest.raises(ValueError, match="trust_remote_code: true"):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="dtype is 'int4'"):
        EncodingSettings(dtype="int4")
    assert EncodingSettings().numerics == ""
    settings = EncodingSettings(dtype="bfloat16", backend="onnx")
    assert settings.numerics == "bfloat16-onnx"
    folder = SuiteModel.named("m", "f", path="m")
    assert settings.of_model(folder).numerics == "bfloat16-onnx"
    assert settings.of_model(SuiteModel.named("package:minilm-l6", "f")).numerics == ""


def test_packaged_models_store_their_siblings(tmp_path: Path, tiny_tasks: Any) -> None:
    pytest.importorskip("wordllama", reason="the extra `sample` is not installed")
    store, task = VectorStore(tmp_path / "vectors"), tiny_tasks.sts.metadata
    spec, sibling = (SuiteModel.named(f"package:wordllama-{d}", "w") for d in (256, 64))
    first = open_encoder(
        spec, identify(spec, tmp_path), store, home=tmp_path, keep=["package:wordllama-64"]
    )
    assert first.vectors(TEXTS, task).shape == (3, 256)
    second = open_encoder(sibling, identify(sibling, tmp_path), store, home=tmp_path)
    assert second.vectors(TEXTS, task).shape == (3, 64)
    assert second.counts.encoded == 0
    assert len({path.parts[-3] for path in store.root.glob("*/*/*.npy")}) == 2


def test_hub_models_get_the_prompts_of_mtebs_registry(
    tmp_path: Path, bert_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    """A stand-in for a downloaded model, with nothing answering at the hub's address."""
    import mteb
    from huggingface_hub import constants

    name = "intfloat/multilingual-e5-small"
    revision = str(mteb.get_model_meta(name).revision)
    cached = Path(constants.HF_HUB_CACHE) / "models--intfloat--multilingual-e5-small"
    snapshot = bert_folder(cached / "snapshots" / revision)
    spec = SuiteModel.named(name, "e5")
    identity = identify(spec, tmp_path)
    encoder = open_encoder(spec, identity, VectorStore(tmp_path / "v"), 512, home=tmp_path)
    plain = opened(tmp_path / "home", shutil.copytree(snapshot, tmp_path / "plain"))
    task = tiny_tasks.retrieval.metadata
    try:
        for kind, prompt in (("query", "query: "), ("document", "passage: "), ("", "")):
            np.testing.assert_allclose(
                encoder.vectors(TEXTS, task, kind),
                plain.vectors([prompt + t for t in TEXTS], task),
                atol=1e-6,
            )
    finally:
        shutil.rmtree(cached)
    assert identity.revision == revision
    assert encoder.mteb_model_meta.revision == f"{revision}-512tokens"


def test_instruct_models_are_addressed_by_the_formatted_instruction(
    tmp_path: Path, static_folder: Callable[..., Path]
) -> None:
    import mteb
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    task = mteb.get_task("SciFact").metadata
    inner = InstructSentenceTransformerModel(
        str(static_folder(tmp_path / "m")),
        "1",
        instruction_template="Instruct: {instruction} Query: ",
        apply_instruction_to_passages=False,
        device="cpu",
    )
    prompt, route = literal_prompt(inner, task, "query")
    assert prompt.startswith("Instruct: Given a scientific claim")
    assert prompt.endswith("Query: ")
    assert literal_prompt(inner, task, "document") == ("", "")
    assert route == ""


def test_models_that_route_keep_queries_and_documents_apart(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router

    sides = [SentenceTransformer(str(static_folder(tmp_path / s, i)), device="cpu")[0]
             for i, s in enumerate("qd")]  # fmt: skip
    router = Router.for_query_document([sides[0]], [sides[1]])
    folder = tmp_path / "routed"
    SentenceTransformer(modules=[router], device="cpu").save(str(folder), create_model_card=False)
    encoder = opened(tmp_path / "home", folder)
    task = tiny_tasks.retrieval.metadata
    query, document = (encoder.vectors(TEXTS, task, kind) for kind in ("query", "document"))
    assert not np.allclose(query, document)
    home = tmp_path / "home"
    np.testing.assert_allclose(query, opened(home, tmp_path / "q").vectors(TEXTS, task))
    np.testing.assert_allclose(document, opened(home, tmp_path / "d").vectors(TEXTS, task))


def test_prompts_for_a_model_that_takes_none_are_refused(tmp_path: Path, tiny_tasks: Any) -> None:
    spec = SuiteModel.named("mteb/baseline-random-encoder", "random", prompts={"query": "q: "})
    store = VectorStore(tmp_path / "vectors")
    encoder = open_encoder(spec, identify(spec, tmp_path), store, home=tmp_path)
    with pytest.raises(ValueError, match="takes no prompts"):
        encoder.vectors(TEXTS, tiny_tasks.sts.metadata)


def test_folders_of_other_kinds_are_refused(
    tmp_path: Path, static_folder: Callable[..., Path], tiny_tasks: Any
) -> None:
    folder = static_folder(tmp_path / "m")
    config = folder / "config_sentence_transformers.json"
    config.write_text(config.read_text().replace('"SentenceTransformer"', '"CrossEncoder"'))
    with pytest.raises(ValueError, match="is a CrossEncoder"):
        opened(tmp_path / "home", folder).vectors(TEXTS, tiny_tasks.sts.metadata)
