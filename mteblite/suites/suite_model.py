"""A model of a suite: its name, the place of its weights, its variant, family and role.

A name is a hub name, the name of a registered local folder, or `package:<name>`. The suffixes
`+norm`, `@dim=<n>`, `+task-prompts`, `+category-prompts` and `+no-prompts` make variants of one
checkpoint. Each variant is a separate model; variants share the stored vectors where these agree.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from mteblite.suites.method_keys import Strict

PROMPT_STRATEGIES = ("task", "category", "none")
PROVENANCES = ("self_reported", "partly_self_reported")
"""Models whose authors measured all or part of the scores; reports mark them with a dagger."""

# Not allowed: "|", which separates dimensions of a Dagster partition key, and "..", part of ranges.
_NAME = re.compile(r"[^\W_][\w.+@=/:-]*")
# With what is added to it, a name is a file name, of which systems take 255 bytes.
_NAME_BYTES = 200
_VARIANT = re.compile(
    r"(?P<base>.+?)(?P<suffixes>(?:\+norm|\+(?:task|category|no)-prompts|@dim=[0-9]+)*)"
)
VARIANTS = ("+norm", "+task-prompts", "+category-prompts", "+no-prompts")
"""Suffixes of variants without a number."""
_UNKNOWN_VARIANT = re.compile(r"@[A-Za-z_]+(?:=|$)")
_PACKAGE = "package:"


class SuiteModel(Strict):
    """One model as a suite file or `mteblite models add` names it.

    Attributes:
        name: with suffixes; unique within a suite.
        family: models that share weights or training; validation holds them out together.
        path: folder of a local sentence-transformers checkpoint, else None.
        revision: revision on the hub; None = the one of mteb's registry or of the hub.
        normalize: L2-normalise the vectors, like the suffix `+norm`.
        truncate_dim: keep the first dimensions and renormalise, like `@dim=`.
        prompts: prompts by mteb's keys (`query`, `document`, a task name, a task type ...);
            None = those of mteb's registry or of the checkpoint's configuration.
        prompt_strategy: which prompts may be used, like the suffixes: those of single tasks
            (`task`), those of task types and of queries and documents (`category`), or no prompts
            (`none`). None = the prompt that mteb finds first.
        trust_remote_code: allow the checkpoint's Python code to run.
        private: the suite gives only the name; the model takes part in a home that gives a `path`.
        provenance: origin of its scores, in PROVENANCES; None = measured.
    """

    name: str
    family: str = Field(min_length=1)
    role: Literal["reference", "candidate"] = "reference"
    path: str | None = None
    revision: str | None = None
    normalize: bool = False
    truncate_dim: int | None = Field(None, ge=1)
    prompts: dict[str, str] | None = None
    prompt_strategy: Literal[PROMPT_STRATEGIES] | None = None  # type: ignore[valid-type]
    trust_remote_code: bool = False
    private: bool = False
    provenance: Literal[PROVENANCES] | None = None  # type: ignore[valid-type]

    @classmethod
    def named(cls, name: str, family: str | None = None, **options: Any) -> SuiteModel:
        """Return a model: by default a candidate whose family is its name.

        Raises:
            ValueError: an option is not allowed; the message names it.
        """
        given = {"role": "candidate", **options, "name": name}
        try:
            return cls(**given, family=name if family is None else family)
        except ValidationError as error:
            problem = error.errors()[0]
            message = problem["msg"].removeprefix("Value error, ")
            place = ".".join(map(str, problem["loc"]))
            own = problem["type"] == "value_error"
            raise ValueError(message if own else f"model {name!r}: {place}: {message}") from error

    @field_validator("name")
    @classmethod
    def _usable_name(cls, value: str) -> str:
        check_model_name(value)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> SuiteModel:
        if self.path is not None and self.is_packaged:
            raise ValueError(
                f"model {self.name!r} is a packaged model and cannot have a path ({self.path!r}): "
                "drop the path or rename the model"
            )
        _check_dims(self.name, self.truncate_dim)
        _check_strategy(self.name, self.prompt_strategy, self.is_packaged)
        return self

    @property
    def has_weights(self) -> bool:
        """Whether weights can be loaded: from a path, a package or the hub."""
        return self.path is not None or not self.private

    @property
    def base(self) -> str:
        """The checkpoint's name, without variant suffixes."""
        return _split(self.name)[0]

    @property
    def is_packaged(self) -> bool:
        """Whether the weights come inside a Python package."""
        return self.name.startswith(_PACKAGE)

    @property
    def packaged_name(self) -> str:
        """The catalog name of a packaged model."""
        return self.base.removeprefix(_PACKAGE)

    @property
    def dim(self) -> int | None:
        """Number of leading dimensions kept; None = all."""
        dims = _suffix_dims(self.name)
        return dims[0] if dims else self.truncate_dim

    @property
    def norm(self) -> bool:
        """Whether vectors are L2-normalised on reading; truncated vectors always are."""
        return self.normalize or "+norm" in _split(self.name)[1] or self.dim is not None

    @property
    def strategy(self) -> str | None:
        """The prompt strategy, from the name or the option; None = mteb's own lookup."""
        return next(iter(_suffix_strategies(self.name)), self.prompt_strategy)

    @property
    def variant(self) -> str:
        """The variant in its canonical spelling; "" for the checkpoint itself."""
        if self.dim is not None:
            return f"@dim={self.dim}"
        return "+norm" if self.norm else ""

    @property
    def deviation(self) -> str:
        """Difference from the published model: variant, else prompt strategy, else ""."""
        return self.variant or self.strategy or ""


def checkpoint_name(name: str) -> str:
    """Return a model's name without its variant suffixes."""
    return _split(name)[0]


def check_model_name(name: str) -> None:
    """Check that a name can be a partition key, a folder name and a table value.

    Raises:
        ValueError: the name is empty or too long, or has a character or a variant that is not
            allowed.
    """
    if (size := len(name.encode(errors="surrogateescape"))) > _NAME_BYTES:
        raise ValueError(
            f"model name {name[:40]!r}... has {size} bytes; at most {_NAME_BYTES} are allowed: "
            "choose a shorter name"
        )
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(
            f"model name {name!r} is not allowed: it must start with a letter or digit and hold "
            "only letters, of any script, digits and . _ + @ = / : - (no spaces, no '|', no '..')"
        )
    base, suffixes = _split(name)
    unknown = _UNKNOWN_VARIANT.search(base)
    if unknown:
        raise ValueError(
            f"model name {name!r} has the unknown variant {unknown.group()!r}; "
            "known: +norm, @dim=<number> and +task-prompts, +category-prompts, +no-prompts, at the "
            "end of the name"
        )
    suffix = base[base.rfind("+") :] if "+" in base else ""
    near = difflib.get_close_matches(suffix, VARIANTS, n=1, cutoff=0.75)
    if near:
        raise ValueError(
            f"model name {name!r} ends in {suffix!r}, which is no variant: did you mean {near[0]}?"
        )
    if base in ("", _PACKAGE):
        raise ValueError(
            f"model name {name!r} names no checkpoint before {suffixes!r}: write the checkpoint's "
            "name first"
        )


def mteb_name(name: str) -> str:
    """Return a model name in mteb's form, which must have an organisation before a slash."""
    if name.startswith(_PACKAGE):
        return f"package/{name.removeprefix(_PACKAGE)}"
    return name if "/" in name else f"local/{name}"


def _split(name: str) -> tuple[str, str]:
    match = _VARIANT.fullmatch(name)
    return (match["base"], match["suffixes"]) if match else (name, "")


def _suffix_dims(name: str) -> list[int]:
    return [int(n) for n in re.findall(r"@dim=([0-9]+)", _split(name)[1])]


def _suffix_strategies(name: str) -> list[str]:
    found = re.findall(r"\+(task|category|no)-prompts", _split(name)[1])
    return ["none" if f == "no" else f for f in found]


def _check_strategy(name: str, given: str | None, packaged: bool) -> None:
    asked = {*_suffix_strategies(name), *([given] if given else [])}
    if len(asked) > 1:
        raise ValueError(
            f"model {name!r} asks for several prompt strategies {sorted(asked)}: "
            "give one, in the name or as prompt_strategy"
        )
    if asked and packaged:
        raise ValueError(
            f"model {name!r} is a packaged model with fixed prompts: leave the prompt strategy out"
        )


def _check_dims(name: str, truncate_dim: int | None) -> None:
    dims = _suffix_dims(name) + ([] if truncate_dim is None else [truncate_dim])
    if len(set(dims)) > 1:
        raise ValueError(
            f"model {name!r} asks for several dimensions {sorted(set(dims))}: "
            "give one, in the name or as truncate_dim"
        )
    if any(d < 1 for d in dims):
        raise ValueError(f"model {name!r} asks for {dims[0]} dimensions; at least 1 is needed")
