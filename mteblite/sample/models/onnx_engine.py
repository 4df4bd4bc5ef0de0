"""paraphrase-MiniLM-L3-v2 from the ONNX file of its package, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mteblite.sample.models.bert import TOKENS_PER_BATCH, batches_by_length, pad, shorten
from mteblite.sample.models.catalog import VariantSettings
from mteblite.sample.models.package_files import distribution_file
from mteblite.sample.models.parents import Parent

POOLED_OUTPUT = 3
"""Number of the output that is the mean over tokens; the names of the outputs do not say it."""


class OnnxEngine:
    """The ONNX graph with a tokenizer. The graph pools, so variants differ after pooling only."""

    def __init__(self, parent: Parent) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        graph, tokenizer = (distribution_file(*file) for file in parent.files)
        available = onnxruntime.get_available_providers()
        wanted = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in available]
        options = onnxruntime.SessionOptions()
        # Waiting threads that spin would take the cores from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=wanted)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._dim = parent.dim

    def pooled(
        self, texts: list[str], variants: Collection[VariantSettings], max_tokens: int | None
    ) -> dict[VariantSettings, np.ndarray]:
        """Return (n, dim) float32 pooled vectors per variant; see `load.Engine`."""
        out = np.empty((len(texts), self._dim), dtype=np.float32)
        ids = [shorten(e.ids, max_tokens) for e in self._tokenizer.encode_batch(texts)]
        for rows in batches_by_length(ids, TOKENS_PER_BATCH):
            batch, mask = pad([ids[r] for r in rows], pad_id=0)
            inputs = {"input_ids": batch, "attention_mask": mask.astype(np.int64)}
            out[rows] = self._session.run(None, inputs)[POOLED_OUTPUT]
        return dict.fromkeys(variants, out)
