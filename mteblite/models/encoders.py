"""Opening a model: hub name, local sentence-transformers folder, or packaged model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from mteblite.models.devices import split_devices
from mteblite.models.loading import loader
from mteblite.models.model_identity import ModelIdentity, identify
from mteblite.models.running_models import MtebRunning, PackagedRunning, RunningModel, facts_name
from mteblite.models.stored_encoder import StoredEncoder
from mteblite.models.unchanged import unchanged
from mteblite.suites.suite_model import SuiteModel
from mteblite.vectors.store import VectorStore


@dataclass(frozen=True)
class EncodingSettings:
    """How models are run; packaged models use the chunk size and, on torch, the first device.

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
        split_devices(self.device)
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
        return split_devices(self.device)

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
        identity: the result of `identify`. It is checked before and after weights are loaded, so
            that vectors of an overwritten checkpoint are not stored under the old address.
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

        model = PackagedRunning(
            spec.packaged_name, fingerprint, max_tokens, names,
            lambda: unchanged(spec, identity, home), settings.devices,
        )  # fmt: skip
    else:
        base = identity.base_fingerprint
        facts = store.root / base / facts_name(spec.prompts, spec.strategy)
        load = loader(spec, identity, settings, home)
        model = MtebRunning(base, load, facts, max_tokens, settings)
    return StoredEncoder(
        spec, identity, store, model, settings, max_tokens=max_tokens, progress=progress
    )
