"""Opening a model: hub name, local sentence-transformers folder, or packaged model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteblite.models.backends import install_hint, require_backend
from mteblite.models.model_identity import ModelIdentity, identify
from mteblite.models.prompt_strategy import apply_strategy
from mteblite.models.running_models import MtebRunning, PackagedRunning, RunningModel, facts_name
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol


@dataclass(frozen=True)
class EncodingSettings:
    """How hub models and local folders are run; packaged models use the chunk size only.

    Attributes:
        batch_size: texts per forward pass.
        device: `cuda`, `cuda:1`, `cpu` ...; several with commas (`cuda:0,cuda:1`) share the texts,
            one process each; None = a GPU when there is one.
        dtype: `float16`, `bfloat16` or `float32`; None = the one that mteb loads the model in.
        backend: sentence-transformers' `torch`, `onnx` or `openvino`.
        chunk_size: texts encoded by one call; a killed run repeats at most a few chunks.
    """

    batch_size: int = 32
    device: str | None = None
    dtype: str | None = None
    backend: str = "torch"
    chunk_size: int = 2048

    def __post_init__(self) -> None:
        allowed = {"dtype": (None, "float32", "float16", "bfloat16"),
                   "backend": ("torch", "onnx", "openvino")}  # fmt: skip
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} is {getattr(self, name)!r}; allowed: {values}")
        if self.batch_size < 1 or self.chunk_size < 1:
            raise ValueError(
                f"batch_size {self.batch_size} and chunk_size {self.chunk_size} must be positive"
            )

    @classmethod
    def from_environment(cls) -> EncodingSettings:
        """Return the settings of the variables MTEBLITE_BATCH_SIZE, _DEVICE, _DTYPE, _BACKEND.

        Raises:
            ValueError: a value is not allowed; names the variable, its value and what is allowed.
        """
        from mteblite.models.encoding_variables import read_encoding_variables

        return cls(**read_encoding_variables())

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, one by one; empty = sentence-transformers' choice."""
        return tuple(d.strip() for d in (self.device or "").split(",") if d.strip())

    @property
    def load_device(self) -> str | None:
        """The device to load weights on; for several devices they are shared in main memory."""
        return "cpu" if len(self.devices) > 1 else next(iter(self.devices), None)

    @property
    def numerics(self) -> str:
        """Precision and backend where they change vectors, "" for the defaults."""
        return "-".join(p for p in (self.dtype, self.backend) if p and p != "torch")

    def of_model(self, spec: SuiteModel) -> EncodingSettings:
        """Return the settings of a model; packaged models have one precision and one backend."""
        return replace(self, dtype=None, backend="torch") if spec.is_packaged else self


def open_encoder(
    spec: SuiteModel,
    identity: ModelIdentity,
    store: VectorStore,
    max_tokens: int | None = None,
    *,
    home: Path,
    settings: EncodingSettings | None = None,
    keep: Collection[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredEncoder:
    """Return a model as an mteb encoder that reads from the store; loads no weights yet.

    Args:
        spec: the model.
        identity: the result of `identify`. It is checked again when weights are loaded, so that
            vectors of an overwritten checkpoint are not stored under the old address.
        store: the vector store.
        max_tokens: caps the model's own token limit, never raises it; None = its own limit.
        home: folder with the cache of identities.
        settings: batch size, device, precision, backend.
        keep: names of packaged models, with or without `package:`, whose vectors are stored too
            when the same forward pass gives them; None = all siblings.
        progress: called with (encoded, to encode) after every chunk.

    Raises:
        ValueError: max_tokens is not positive.
    """
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; it must be positive, or null for no cap")
    settings = (settings or EncodingSettings()).of_model(spec)
    model: RunningModel
    if spec.is_packaged:
        names = None if keep is None else [k.removeprefix("package:") for k in keep]

        def fingerprint(name: str) -> str:
            return identify(SuiteModel.named(f"package:{name}"), home).base_fingerprint

        model = PackagedRunning(spec.packaged_name, fingerprint, max_tokens, names)
    else:
        base = identity.base_fingerprint
        facts = store.root / base / facts_name(spec.prompts, spec.strategy)
        load = _loader(spec, identity, settings, home)
        model = MtebRunning(base, load, facts, max_tokens, settings)
    return StoredEncoder(
        spec, identity, store, model, settings, max_tokens=max_tokens, progress=progress
    )


def _loader(
    spec: SuiteModel, identity: ModelIdentity, settings: EncodingSettings, home: Path
) -> Callable[[], EncoderProtocol]:
    def load() -> EncoderProtocol:
        if identify(spec, home, settings.backend) != identity:
            raise ValueError(
                f"model {spec.name!r} changed since this run started: run again to score it "
                "as a new model"
            )
        require_backend(spec.name, settings.backend)
        try:
            if spec.path:
                return _adjusted(_load_local(spec, settings), spec, settings)
            return _adjusted(_load_hub(spec, identity, settings), spec, settings)
        except (ValueError, OSError, ImportError) as error:
            if "trust_remote_code" in str(error) and not spec.trust_remote_code:
                raise _remote_code_error(spec) from error
            if isinstance(error, ImportError) and settings.backend != "torch":
                raise ValueError(
                    f"backend {settings.backend!r} of model {spec.name!r} does not work with the "
                    f"installed transformers ({error}): {install_hint(settings.backend)}"
                ) from error
            error.add_note(f"while loading model {spec.name!r}")
            raise

    return load


def _adjusted(
    inner: EncoderProtocol, spec: SuiteModel, settings: EncodingSettings
) -> EncoderProtocol:
    """Apply the spec's prompts and the settings' precision."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    wraps = isinstance(inner, SentenceTransformerEncoderWrapper | InstructSentenceTransformerModel)
    if not wraps and (spec.prompts is not None or spec.strategy or settings.numerics):
        raise ValueError(
            f"model {spec.name!r} runs as mteb's {type(inner).__name__}, which takes no prompts, "
            "precision or backend: leave them out for this model"
        )
    if spec.prompts is not None and isinstance(inner, SentenceTransformerEncoderWrapper):
        # Replaces all prompts of the checkpoint, as mteb's `model_prompts` do.
        inner.model_prompts = dict(spec.prompts)
        inner.model.prompts = dict(spec.prompts)
    elif spec.prompts is not None:
        inner.prompts_dict = dict(spec.prompts)
    if spec.strategy is not None:
        apply_strategy(inner, spec.strategy)
    if settings.dtype is not None and settings.backend == "torch":
        import torch

        inner.model.to(getattr(torch, settings.dtype))
    return inner


def _load_local(spec: SuiteModel, settings: EncodingSettings) -> EncoderProtocol:
    """Load a folder, with its own prompts, without the network."""
    return _sentence_transformer(spec, settings, str(spec.path), local_files_only=True)


def _load_hub(
    spec: SuiteModel, identity: ModelIdentity, settings: EncodingSettings
) -> EncoderProtocol:
    """Load a model of mteb's registry by mteb's loader, any other by sentence-transformers."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
    from mteb.models.model_implementations import MODEL_REGISTRY

    meta = MODEL_REGISTRY.get(spec.base)
    if meta is None:
        at = {"revision": identity.revision}
        if _is_cached(spec.base, identity.revision):
            with contextlib.suppress(OSError):
                return _sentence_transformer(spec, settings, spec.base, local_files_only=True, **at)
        return _sentence_transformer(spec, settings, spec.base, **at)
    if "dense" not in meta.model_type:
        raise ValueError(
            f"model {spec.name!r} is a {'/'.join(meta.model_type)} model; only models that give "
            "one vector per text can be run"
        )
    if meta.loader_kwargs.get("trust_remote_code") and not spec.trust_remote_code:
        raise _remote_code_error(spec)
    extra = {"backend": settings.backend} if settings.backend != "torch" else {}
    own = meta.model_copy(update={"revision": identity.revision})
    loader = getattr(meta.loader, "func", meta.loader)
    takes_local = loader in (SentenceTransformerEncoderWrapper, InstructSentenceTransformerModel)
    if takes_local and _is_cached(spec.base, identity.revision):
        # Without a network, each file of a complete copy would cost a minute of retries.
        with contextlib.suppress(OSError):
            return own.load_model(device=settings.load_device, local_files_only=True, **extra)
    return own.load_model(device=settings.load_device, **extra)


def _is_cached(name: str, revision: str) -> bool:
    """Whether the hub's cache has a folder for the revision; it may be incomplete."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    return (folder / revision).is_dir()


def _sentence_transformer(
    spec: SuiteModel, settings: EncodingSettings, name: str, **kwargs: Any
) -> EncoderProtocol:
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        name,
        device=settings.load_device,
        trust_remote_code=spec.trust_remote_code,
        backend=settings.backend,
        **kwargs,
    )
    return SentenceTransformerEncoderWrapper(model)


def _remote_code_error(spec: SuiteModel) -> ValueError:
    return ValueError(
        f"model {spec.name!r} needs its repository's own Python code: read the code, then set "
        "`trust_remote_code: true` for this model"
    )
