"""`package:<name>` models: parents and the variants that stand in for checkpoints.

Plain data: importing this needs neither numpy nor torch. One parent's many variants are no
independent families, so each kind of surgery is a family and a variant never sits with its
parent: a validation that holds a family out then holds out whatever behaves alike. Variants of
one parent in different families still share weights; do not count them as independent evidence.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from mteblite.sample.models.package_files import distribution_file, sha256_of
from mteblite.sample.models.parents import PARENTS, Parent

ENCODING_VERSION = 1
"""Raise it when the encoding code changes what comes out: every fingerprint follows."""


@dataclass(frozen=True)
class VariantSettings:
    """What makes a variant of a parent.

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
        settings: what makes it differ from the parent.
    """

    name: str
    family: str
    parent: str
    settings: VariantSettings

    @property
    def source(self) -> Parent:
        """The parent's facts: engine, distribution, version, licence, files."""
        return PARENTS[self.parent]

    @property
    def distribution(self) -> str:
        """Package on PyPI."""
        return self.source.distribution

    @property
    def version(self) -> str:
        """Version of the package that was measured."""
        return self.source.version

    @property
    def licence(self) -> str:
        """Licence of the weights."""
        return self.source.licence

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(distribution, path) of the files whose content makes the identity."""
        return self.source.files

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.settings.dim or self.source.dim


def fingerprint(name: str) -> str:
    """Return a packaged model's identity: 32 hex digits over weights, settings, encoding code.

    Raises:
        ValueError: no such model, or its package is not installed.
    """
    model = packaged_model(name)
    hashes = [sha256_of(distribution_file(*file)) for file in model.files]
    facts = {"files": hashes, "settings": asdict(model.settings), "encoding": ENCODING_VERSION}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def prompt(name: str, prompt_type: str, task_type: str = "") -> str:
    """Return the literal text that a packaged model puts before a text.

    Args:
        name: name in the catalog.
        prompt_type: `query`, `document` or "" (symmetric tasks).
        task_type: mteb's task type; no packaged model distinguishes by it.

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
    """Return a model of the catalog; the prefix `package:` may stand before its name.

    Raises:
        ValueError: no such model.
    """
    short = name.removeprefix("package:")
    if short not in PACKAGED_MODELS:
        raise ValueError(
            f"no packaged model {name!r}; there are: {', '.join(sorted(PACKAGED_MODELS))}"
        )
    return PACKAGED_MODELS[short]


def _variants() -> list[PackagedModel]:
    return [*_minilm(), *_multilingual(), *_static()]


def _minilm() -> list[PackagedModel]:
    parent, base = "all-MiniLM-L6-v2", "minilm-l6"

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
        PackagedModel(
            "paraphrase-minilm-l3",
            "paraphrase-minilm-l3",
            "paraphrase-MiniLM-L3-v2",
            VariantSettings(normalize=False),
        ),
        PackagedModel(
            "paraphrase-minilm-l3-64d",
            "paraphrase-minilm-l3",
            "paraphrase-MiniLM-L3-v2",
            VariantSettings(dim=64),
        ),
    ]


def _multilingual() -> list[PackagedModel]:
    parent, base, family = "multilingual-e5-small-q4", "multilingual-e5-small-q4", "multilingual-e5"
    use = "use-multilingual-v3"
    return [
        PackagedModel(base, family, parent, VariantSettings()),
        PackagedModel(f"{base}-no-prompt", family, parent, VariantSettings(prompts="off")),
        PackagedModel(f"{base}-all-prompts", family, parent, VariantSettings(prompts="always")),
        PackagedModel(f"{base}-64d", family, parent, VariantSettings(dim=64)),
        *(
            PackagedModel(
                f"{base}-first{n}",
                f"{family}-early-exit",
                parent,
                VariantSettings(layers=tuple(range(n))),
            )
            for n in (2, 4, 6, 8, 10, 11)
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


PACKAGED_MODELS: dict[str, PackagedModel] = {model.name: model for model in _variants()}
"""Every packaged model by its name (without `package:`)."""
