"""`package:<name>` models: parents, and their variants that act as checkpoints.

Plain data, without numpy and torch. Each kind of change to a parent is a family, so that a
validation that holds out a family holds out all models with similar outcomes. Variants of one
parent in different families still share weights; do not count them as independent evidence.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mteblite.sample.models.package_files import cached_sha256, distribution_file
from mteblite.sample.models.parents import PARENTS, Parent

ENCODING_VERSION = 1
"""Raise it when the encoding code changes vectors; every fingerprint depends on it."""


@dataclass(frozen=True)
class VariantSettings:
    """How a variant differs from its parent.

    Attributes:
        layers: transformer layers that run, in order; None = all of them.
        pooling: `mean`, `cls`, `max`, `weighted` (mean weighted by position) or `sif`
            (mean with smooth inverse word frequencies, static models only).
        dim: leading dimensions that are kept; None = all.
        one_bit: only the signs are kept.
        normalize: whether vectors have unit length.
        prompts: `retrieval` (as mteb: the parent's prompts on queries and documents only),
            `always` (texts without a prompt type get the query prompt, as E5's authors advise
            for symmetric tasks), or `off`.
        denoise: numbers are masked (use-multilingual only).
    """

    layers: tuple[int, ...] | None = None
    pooling: str = "mean"
    dim: int | None = None
    one_bit: bool = False
    normalize: bool = True
    prompts: str = "retrieval"
    denoise: bool = False


@dataclass(frozen=True)
class PackagedModel:
    """A model of the catalog.

    Attributes:
        name: the name after `package:`.
        family: family suggested to suites.
        parent: name in PARENTS.
        settings: how it differs from the parent.
    """

    name: str
    family: str
    parent: str
    settings: VariantSettings

    @property
    def source(self) -> Parent:
        """The parent's facts: engine, distribution, version, licence, files."""
        return PARENTS[self.parent]


def weight_files(name: str) -> list[Path]:
    """Return the installed files that a packaged model is made of.

    Raises:
        ValueError: no such model, or its package is not installed.
    """
    return [distribution_file(*file) for file in packaged_model(name).source.files]


def fingerprint(name: str) -> str:
    """Return a packaged model's identity: 32 hex digits over weights, settings, encoding code.

    Raises:
        ValueError: no such model, or its package is not installed.
    """
    model = packaged_model(name)
    hashes = [cached_sha256(file) for file in weight_files(name)]
    facts = {"files": hashes, "settings": asdict(model.settings), "encoding": ENCODING_VERSION}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def prompt(name: str, prompt_type: str) -> str:
    """Return the literal text that a packaged model puts before a text.

    Args:
        name: name in the catalog.
        prompt_type: `query`, `document` or "" (symmetric tasks).

    Raises:
        ValueError: no such model.
    """
    model = packaged_model(name)
    prompts = dict(model.source.prompts)
    if model.settings.prompts == "off":
        return ""
    if model.settings.prompts == "always" and prompt_type not in prompts:
        return prompts.get("query", "")
    return prompts.get(prompt_type, "")


def packaged_model(name: str) -> PackagedModel:
    """Return a model of the catalog, by its name with or without `package:`.

    Raises:
        ValueError: no such model.
    """
    short = name.removeprefix("package:")
    if short not in PACKAGED_MODELS:
        raise ValueError(
            f"no packaged model {name!r}; there are: {', '.join(sorted(PACKAGED_MODELS))}"
        )
    return PACKAGED_MODELS[short]


def _minilm() -> list[PackagedModel]:
    parent, base = "all-MiniLM-L6-v2", "minilm-l6"
    small, small_parent = "paraphrase-minilm-l3", "paraphrase-MiniLM-L3-v2"

    def variant(suffix: str, family: str, **settings: object) -> PackagedModel:
        return PackagedModel(base + suffix, base + family, parent, VariantSettings(**settings))  # type: ignore[arg-type]

    kept = ((0, 5), (1, 3, 5), (0, 1, 2, 4, 5), (0, 1, 3, 4, 5))
    return [
        variant("", ""),
        *(variant(f"-first{n}", "-early-exit", layers=tuple(range(n))) for n in range(1, 6)),
        *(variant(f"-keep{''.join(map(str, k))}", "-layer-drop", layers=k) for k in kept),
        *(variant(f"-{p}", "-pooling", pooling=p) for p in ("cls", "max", "weighted")),
        variant("-first3-cls", "-pooling", layers=(0, 1, 2), pooling="cls"),
        *(variant(f"-{d}d", "-truncated", dim=d) for d in (256, 128, 64, 32, 16)),
        variant("-1bit", "-truncated", one_bit=True),
        PackagedModel(small, small, small_parent, VariantSettings(normalize=False)),
        PackagedModel(f"{small}-64d", small, small_parent, VariantSettings(dim=64)),
    ]


def _multilingual() -> list[PackagedModel]:
    e5, family, use = "multilingual-e5-small-q4", "multilingual-e5", "use-multilingual-v3"
    prefixes = {n: VariantSettings(layers=tuple(range(n))) for n in (2, 4, 6, 8, 10, 11)}
    return [
        PackagedModel(e5, family, e5, VariantSettings()),
        PackagedModel(f"{e5}-no-prompt", family, e5, VariantSettings(prompts="off")),
        PackagedModel(f"{e5}-all-prompts", family, e5, VariantSettings(prompts="always")),
        PackagedModel(f"{e5}-64d", family, e5, VariantSettings(dim=64)),
        *(
            PackagedModel(f"{e5}-first{n}", f"{family}-early-exit", e5, settings)
            for n, settings in prefixes.items()
        ),
        PackagedModel(use, "use-multilingual", use, VariantSettings()),
        PackagedModel(f"{use}-64d", "use-multilingual", use, VariantSettings(dim=64)),
        PackagedModel(f"{use}-denoise", "use-multilingual", use, VariantSettings(denoise=True)),
    ]


def _static() -> list[PackagedModel]:
    words, glove = "wordllama-l2-supercat", "glove-6B-50d"
    return [
        *(
            PackagedModel(f"wordllama-{d}", "wordllama", words, VariantSettings(dim=d))
            for d in (256, 128, 64)
        ),
        PackagedModel("wordllama-1bit", "wordllama", words, VariantSettings(one_bit=True)),
        PackagedModel("glove-50d", "glove", glove, VariantSettings(normalize=False)),
        PackagedModel(
            "glove-50d-sif", "glove", glove, VariantSettings(pooling="sif", normalize=False)
        ),
    ]


PACKAGED_MODELS: dict[str, PackagedModel] = {
    model.name: model for model in (*_minilm(), *_multilingual(), *_static())
}
"""Every packaged model by its name (without `package:`)."""

PUBLIC_PARENTS: dict[str, str] = {
    f"package:{model.name}": model.source.public_name
    for model in PACKAGED_MODELS.values()
    if model.source.public_name
}
"""Packaged models with the public checkpoint that they are or were made of."""
