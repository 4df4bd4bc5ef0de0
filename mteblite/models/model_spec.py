"""What a model is called: its checkpoint, its variant, its family and role.

A name is a hub name, the name of a registered local folder, or `package:<name>`; the suffixes
`+norm`, `@dim=<n>`, `+task-prompts`, `+category-prompts` and `+no-prompts` make variants of one
checkpoint, each a model of its own that shares the checkpoint's stored vectors where they agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from mteblite.suites.suite_file import PROMPT_STRATEGIES, SuiteModel

ROLES = ("reference", "candidate")

# "|" separates the dimensions of a Dagster partition key and "..." its ranges.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=/:-]*")
_VARIANT = re.compile(
    r"(?P<base>.+?)(?P<suffixes>(?:\+norm|\+(?:task|category|no)-prompts|@dim=[0-9]+)*)"
)
_UNKNOWN_VARIANT = re.compile(r"@[A-Za-z_]+(?:=|$)")
_PACKAGE = "package:"


@dataclass(frozen=True)
class ModelSpec:
    """A model as a suite file or `mteblite models add` names it.

    Attributes:
        name: the model's own name, suffixes included; unique within a home.
        family: models that share weights or training; left out together in validation.
        role: `reference` or `candidate`.
        path: folder of a local sentence-transformers checkpoint, else None.
        revision: revision on the hub; None = the one mteb's registry or the hub gives.
        normalize: L2-normalise the vectors, like the suffix `+norm`.
        truncate_dim: keep the first dimensions and renormalise, like `@dim=`.
        prompts: prompts by mteb's keys (`query`, `document`, a task name, a task type ...);
            None = those of mteb's registry or of the checkpoint's own configuration.
        prompt_strategy: which prompts may be used: those of single tasks (`task`), those of task
            types and of queries and documents (`category`), or none at all (`none`), like the
            suffixes; None = whichever mteb finds first.
        trust_remote_code: allow the checkpoint's own Python code to run.

    Raises:
        ValueError: the name, the role or the dimension is not allowed; says what is.
    """

    name: str
    family: str
    role: str = "reference"
    path: str | None = None
    revision: str | None = None
    normalize: bool = False
    truncate_dim: int | None = None
    # A dict cannot be hashed; equal prompts still compare equal.
    prompts: dict[str, str] | None = field(default=None, hash=False)
    prompt_strategy: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        check_model_name(self.name)
        if not self.family:
            raise ValueError(f"model {self.name!r} has no family: give one with `family:`")
        if self.role not in ROLES:
            raise ValueError(
                f"model {self.name!r} has role {self.role!r}; allowed: {', '.join(ROLES)}"
            )
        if self.path is not None and self.is_packaged:
            raise ValueError(
                f"model {self.name!r} is a packaged model and cannot have a path ({self.path!r}): "
                "drop the path or rename the model"
            )
        _check_dims(self.name, self.truncate_dim, _suffix_dims(self.name))
        _check_strategy(self.name, self.prompt_strategy, self.is_packaged)

    @property
    def base(self) -> str:
        """The checkpoint's own name, without variant suffixes."""
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
        """Whether vectors are L2-normalised on reading; a cut always renormalises."""
        return self.normalize or "+norm" in _split(self.name)[1] or self.dim is not None

    @property
    def strategy(self) -> str | None:
        """The prompt strategy, from the name or the option; None = mteb's own lookup."""
        return next(iter(_suffix_strategies(self.name)), self.prompt_strategy)

    @property
    def variant(self) -> str:
        """The variant in one canonical spelling, "" for the checkpoint itself."""
        if self.dim is not None:
            return f"@dim={self.dim}"
        return "+norm" if self.norm else ""

    @property
    def deviation(self) -> str:
        """What makes it another model than the one published: variant, or prompt strategy."""
        return self.variant or self.strategy or ""

    def without_variant(self) -> ModelSpec:
        """Return the spec of the checkpoint itself."""
        return replace(
            self,
            name=self.base,
            normalize=False,
            truncate_dim=None,
            prompt_strategy=self.strategy,
        )


def spec_of(model: SuiteModel) -> ModelSpec:
    """Return what identifies and runs a model, without what only a suite knows of it.

    Raises:
        ValueError: name, role or dimension is not allowed.
    """
    return ModelSpec(**model.model_dump(exclude={"private", "provenance"}))


def named_model(model: str | Path) -> ModelSpec:
    """Return the model that a name or the folder of a checkpoint stands for.

    Raises:
        ValueError: it looks like a folder, but there is none; or the name is not allowed.
    """
    folder = checkpoint_folder(model)
    if folder is None:
        return ModelSpec(str(model), str(model), "candidate")
    name, place = folder[0] or "model", folder[1]
    return ModelSpec(name, name, "candidate", path=place)


def checkpoint_folder(model: str | Path) -> tuple[str, str] | None:
    """Return the name and the absolute path of a checkpoint's folder; None for any other name.

    The name is the folder's, with signs that a model's name must not have replaced; it is "" where
    nothing is left.

    Raises:
        ValueError: it looks like a folder, but there is none.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        place = folder.resolve()
        name = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._=-]+", "-", place.name))
        return name.strip(".-_"), str(place)
    if isinstance(model, Path) or model.startswith((".", "/", "~")):
        raise ValueError(f"no folder {str(model)!r}: expected a checkpoint with weights")
    return None


def checkpoint_name(name: str) -> str:
    """Return a model's name without its variant suffixes."""
    return _split(name)[0]


def check_model_name(name: str) -> None:
    """Check that a name can be a partition key, a folder name and a table value.

    Raises:
        ValueError: the name is empty or has a character or a variant that is not allowed.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(
            f"model name {name!r} is not allowed: it must start with a letter or digit and hold "
            "only letters, digits and . _ + @ = / : - (no spaces, no '|', no '..')"
        )
    base, suffixes = _split(name)
    unknown = _UNKNOWN_VARIANT.search(base)
    if unknown:
        raise ValueError(
            f"model name {name!r} has the unknown variant {unknown.group()!r}; "
            "known: +norm, @dim=<number> and +task-prompts, +category-prompts, +no-prompts, at the "
            "end of the name"
        )
    if base in ("", _PACKAGE):
        raise ValueError(f"model name {name!r} names no checkpoint before {suffixes!r}")


def mteb_name(name: str) -> str:
    """Return a model name in mteb's form, which must have an organisation before a slash."""
    if name.startswith("package:"):
        return f"package/{name.removeprefix('package:')}"
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
    if given is not None and given not in PROMPT_STRATEGIES:
        raise ValueError(
            f"model {name!r} has prompt_strategy {given!r}; allowed: "
            f"{', '.join(PROMPT_STRATEGIES)}, or leave it out"
        )
    asked = {*_suffix_strategies(name), *([given] if given else [])}
    if len(asked) > 1:
        raise ValueError(
            f"model {name!r} asks for several prompt strategies {sorted(asked)}: "
            "give one, in the name or as prompt_strategy"
        )
    if asked and packaged:
        raise ValueError(
            f"model {name!r} is a packaged model, whose prompts are fixed: leave the prompt "
            "strategy out"
        )


def _check_dims(name: str, truncate_dim: int | None, suffix_dims: list[int]) -> None:
    dims = suffix_dims + ([] if truncate_dim is None else [truncate_dim])
    if len(set(dims)) > 1:
        raise ValueError(
            f"model {name!r} asks for several dimensions {sorted(set(dims))}: "
            "give one, in the name or as truncate_dim"
        )
    if any(d < 1 for d in dims):
        raise ValueError(f"model {name!r} asks for {dims[0]} dimensions; at least 1 is needed")
