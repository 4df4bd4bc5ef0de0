"""Loading the weights of a hub model or a local folder, and refusing what is not whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteblite.models.backends import install_hint, require_backend
from mteblite.models.devices import require_devices
from mteblite.models.loaded_tensors import ModelError, first_line, whole_weights
from mteblite.models.model_identity import ModelIdentity
from mteblite.models.prompt_strategy import apply_strategy
from mteblite.models.unchanged import unchanged
from mteblite.suites.suite_model import SuiteModel

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from mteblite.models.encoders import EncodingSettings


def loader(
    spec: SuiteModel, identity: ModelIdentity, settings: EncodingSettings, home: Path
) -> Callable[[], EncoderProtocol]:
    """Return the function that loads a model's weights.

    It raises `ModelError`, one sentence, for a model that cannot be loaded or whose weights are
    not the model's, and for a checkpoint that changed since it was identified, or while it was
    loaded.
    """

    def load() -> EncoderProtocol:
        with unchanged(spec, identity, home, settings.backend):
            require_backend(spec.name, settings.backend)
            require_devices(settings.devices)
            try:
                with whole_weights(spec.name):
                    inner = _load(spec, identity, settings)
            except ModelError:
                raise
            except Exception as error:
                raise _load_error(error, spec, settings) from error
        return _adjusted(inner, spec, settings)

    return load


def _load(spec: SuiteModel, identity: ModelIdentity, settings: EncodingSettings) -> EncoderProtocol:
    if spec.path:
        # With its own prompts, without the network.
        return _sentence_transformer(spec, settings, str(spec.path), local_files_only=True)
    return _load_hub(spec, identity, settings)


def _load_error(error: Exception, spec: SuiteModel, settings: EncodingSettings) -> ModelError:
    """One sentence for an error of the libraries that load models, whose own are many lines."""
    if "trust_remote_code" in str(error) and not spec.trust_remote_code:
        return _remote_code_error(spec)
    reason = first_line(error)
    if isinstance(error, ImportError) and settings.backend != "torch":
        return ModelError(
            f"backend {settings.backend!r} of model {spec.name!r} does not work with the "
            f"installed transformers ({reason}): {install_hint(settings.backend)}"
        )
    place = f" at {spec.path}" if spec.path else ""
    return ModelError(
        f"model {spec.name!r}{place} cannot be loaded ({type(error).__name__}): {reason}"
    )


def _adjusted(
    inner: EncoderProtocol, spec: SuiteModel, settings: EncodingSettings
) -> EncoderProtocol:
    """Apply the spec's prompts and the settings' precision."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    wraps = isinstance(inner, SentenceTransformerEncoderWrapper | InstructSentenceTransformerModel)
    if not wraps and (spec.prompts is not None or spec.strategy or settings.numerics):
        raise ModelError(
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
        raise ModelError(
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


def _remote_code_error(spec: SuiteModel) -> ModelError:
    return ModelError(
        f"model {spec.name!r} needs its repository's own Python code: read the code, then set "
        "`trust_remote_code: true` for this model"
    )
