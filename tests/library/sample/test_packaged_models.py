"""Packaged models: the vectors that their authors' code gives, siblings from one pass."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

from mteblite.sample.models.catalog import (
    PACKAGED_MODELS,
    fingerprint,
    packaged_model,
    prompt,
)
from mteblite.sample.models.load import load_packaged
from mteblite.sample.models.package_files import distribution_file
from mteblite.sample.models.parents import PARENTS

TEXTS = [
    "This is an example sentence",
    "Each sentence is converted",
    "هذه جملة للتجربة",
    "A cat sits on the mat. " * 10,
    "ﬁne ½  Ａ １２ test",
    "",
]
ENGINES = [
    "minilm-l6",
    "minilm-l6-keep135",
    "multilingual-e5-small-q4",
    "paraphrase-minilm-l3",
    "use-multilingual-v3",
    "use-multilingual-v3-denoise",
    "wordllama-256",
    "glove-50d",
]


def installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


MISSING = sorted({p.distribution for p in PARENTS.values() if not installed(p.distribution)})
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"packages {MISSING} missing: pip install 'mteblite[sample]'"
)


def vectors_of(name, texts, prompt_type=""):
    return load_packaged(name).encode_texts(texts, prompt_type, wanted=[])[name]


def dim_of(name):
    return PACKAGED_MODELS[name].settings.dim or PACKAGED_MODELS[name].source.dim


def test_the_catalog_loads_without_heavy_imports():
    code = (
        "import sys; from mteblite.sample.models.catalog import fingerprint\n"
        "fingerprint('minilm-l6')\n"
        "heavy = {'torch', 'numpy', 'transformers', 'tokenizers', 'mteb'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", ENGINES)
def test_every_sibling_comes_out_finite_in_its_size_and_as_if_asked_alone(name):
    encoder = load_packaged(name)
    result = encoder.encode_texts(TEXTS, "")
    assert set(result) == set(encoder.siblings(""))
    assert name in result
    for sibling, vectors in result.items():
        assert vectors.shape == (len(TEXTS), dim_of(sibling))
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        lengths = np.linalg.norm(vectors, axis=1)
        assert lengths.min() > 1e-3
        if PACKAGED_MODELS[sibling].settings.normalize:
            np.testing.assert_allclose(lengths, 1, atol=1e-5)
    for sibling in sorted(result)[:: max(1, len(result) // 3)]:
        np.testing.assert_allclose(vectors_of(sibling, TEXTS), result[sibling], atol=1e-5)


def test_every_model_of_the_catalog_is_reached_by_one_of_the_passes():
    reached = {s for name in ENGINES for s in load_packaged(name).siblings("")}
    alone = set(PACKAGED_MODELS) - reached
    # dropped layers are passes of their own; E5 with prompts everywhere differs on plain texts
    assert all("-keep" in name or "-all-prompts" in name for name in alone)
    for name in alone:
        assert np.isfinite(vectors_of(name, TEXTS[:3])).all()


@pytest.mark.parametrize("name", ENGINES)
def test_vectors_do_not_depend_on_the_company_of_other_texts(name):
    together = vectors_of(name, TEXTS)
    backwards = vectors_of(name, TEXTS[::-1])[::-1]
    alone = np.concatenate([vectors_of(name, [text]) for text in TEXTS])
    np.testing.assert_allclose(backwards, together, atol=2e-5)
    np.testing.assert_allclose(alone, together, atol=2e-5)
    assert vectors_of(name, []).shape == (0, dim_of(name))


def test_minilm_gives_its_model_cards_numbers():
    vectors = vectors_of("minilm-l6", ["This is an example sentence"])
    np.testing.assert_allclose(vectors[0, :3], [0.0677, 0.0635, 0.0487], atol=6e-5)


@pytest.mark.parametrize(
    ("name", "floor", "ceiling"),
    [
        ("minilm-l6", 0.7, 0.2),
        ("multilingual-e5-small-q4", 0.9, 0.85),
        ("paraphrase-minilm-l3", 0.7, 0.2),
        ("use-multilingual-v3", 0.7, 0.2),
        ("wordllama-256", 0.6, 0.2),
    ],
)
def test_a_paraphrase_is_nearer_than_another_subject(name, floor, ceiling):
    texts = ["A man is playing a guitar", "A man plays the guitar", "The stock market fell today"]
    a, b, c = vectors_of(name, texts, "query")

    def cosine(x, y):
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    assert cosine(a, b) > floor
    assert cosine(a, c) < ceiling


@pytest.mark.parametrize("name", ["multilingual-e5-small-q4", "use-multilingual-v3"])
def test_multilingual_models_match_arabic_with_english(name):
    pairs = [
        ("The weather is beautiful today", "الطقس جميل اليوم"),
        ("I forgot my password", "لقد نسيت كلمة المرور"),
        ("The hospital is next to the school", "المستشفى بجانب المدرسة"),
    ]
    english = vectors_of(name, [e for e, _ in pairs], "query")
    arabic = vectors_of(name, [a for _, a in pairs], "query")
    assert (english @ arabic.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_variants_are_what_their_names_say():
    base = vectors_of("minilm-l6", TEXTS)
    cut = base[:, :64] / np.linalg.norm(base[:, :64], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors_of("minilm-l6-64d", TEXTS), cut, atol=1e-6)
    bits = vectors_of("minilm-l6-1bit", TEXTS)
    np.testing.assert_allclose(np.abs(bits), 384**-0.5, rtol=1e-6)
    assert ((bits > 0) == (base >= 0)).all()
    dropped = vectors_of("minilm-l6-keep01345", TEXTS)
    assert np.abs(dropped - base).max() > 0.01
    assert np.abs(dropped - vectors_of("minilm-l6-first5", TEXTS)).max() > 0.01


def test_prompts_are_those_of_the_model_and_decide_who_is_a_sibling():
    e5 = "multilingual-e5-small-q4"
    assert [prompt(e5, p) for p in ("query", "document", "")] == ["query: ", "passage: ", ""]
    assert prompt(f"{e5}-all-prompts", "") == "query: "
    assert prompt(f"{e5}-no-prompt", "query") == ""
    assert prompt("minilm-l6", "query") == ""
    encoder = load_packaged(e5)
    assert f"{e5}-no-prompt" in encoder.siblings("")
    assert f"{e5}-no-prompt" not in encoder.siblings("query")
    written_out = vectors_of(f"{e5}-no-prompt", ["passage: a text"], "query")
    np.testing.assert_allclose(vectors_of(e5, ["a text"], "document"), written_out, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "n_words"), [("minilm-l6", 10), ("wordllama-256", None), ("glove-50d", 12)]
)
def test_the_token_cap_cuts_long_texts_and_leaves_short_ones(name, n_words):
    words = "one house water green seven people night school money river stone king bread music"
    long = " ".join([words, "war love", words])
    capped = load_packaged(name, 12).encode_texts(["one two", long], "", wanted=[])[name]
    np.testing.assert_allclose(capped[0], vectors_of(name, ["one two"])[0], atol=1e-5)
    assert np.abs(capped[1] - vectors_of(name, [long])[0]).max() > 1e-3
    if n_words is not None:  # words of one token each; MiniLM adds two special tokens
        start = " ".join(long.split()[:n_words])
        np.testing.assert_allclose(capped[1], vectors_of(name, [start])[0], atol=1e-5)


def test_the_token_cap_also_holds_for_the_encoder_that_tokenizes_itself():
    name, long = "use-multilingual-v3", "water green seven people night school money river stone"
    capped = load_packaged(name, 6).encode_texts([long, "water"], "", wanted=[])[name]
    assert np.abs(capped[0] - vectors_of(name, [long])[0]).max() > 1e-3
    # the cap of one encoder must not stick to the next one, which shares its weights
    np.testing.assert_array_equal(vectors_of(name, [long]), vectors_of(name, [long]))
    np.testing.assert_allclose(capped[1], vectors_of(name, ["water"])[0], atol=1e-5)


def test_the_models_own_limit_stays_below_a_larger_cap():
    assert load_packaged("minilm-l6", 512).max_tokens == 256
    assert load_packaged("minilm-l6", 64).max_tokens == 64
    assert load_packaged("glove-50d").max_tokens is None
    with pytest.raises(ValueError, match="max_tokens=2; expected at least 3"):
        load_packaged("minilm-l6", 2)


def test_fingerprints_tell_all_models_apart_and_stay():
    prints = {name: fingerprint(name) for name in PACKAGED_MODELS}
    assert len(set(prints.values())) == len(prints)
    assert prints["minilm-l6"] == fingerprint("package:minilm-l6")
    assert prints["minilm-l6"] == "a47714117cde746f7821c5965a59e7f3"


def test_errors_name_the_thing_and_the_way_out():
    with pytest.raises(ValueError, match=r"no packaged model 'minilm'; there are: .*minilm-l6"):
        packaged_model("minilm")
    with pytest.raises(ValueError, match="prompt type 'passage'; expected 'query', 'document' or"):
        load_packaged("glove-50d").encode_texts(["a"], "passage")
    with pytest.raises(ValueError, match="minilm-l6: not from the same pass as glove-50d"):
        load_packaged("glove-50d").encode_texts(["a"], "", wanted=["minilm-l6"])
    with pytest.raises(ValueError, match=r"no-such-package is not installed.*mteblite\[sample\]"):
        distribution_file("no-such-package", "weights.bin")
    with pytest.raises(ValueError, match=r"wordllama .* has no file wordllama/none.bin"):
        distribution_file("wordllama", "wordllama/none.bin")
