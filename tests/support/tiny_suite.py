"""A suite so small that the whole graph runs in seconds: three own tasks, six static models.

Words have latent vectors; texts are a few words of one topic; a model knows the words up to
noise of its own, so that models differ in how well they do and every stage has something to fit.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

SUITE = "tiny"
TASKS = ("TinySTS", "TinyTopics", "TinySearch")
REFERENCES = {
    "tiny-a1": ("a", 0.3),
    "tiny-a2": ("a", 0.5),
    "tiny-b": ("b", 0.8),
    "tiny-c": ("c", 1.3),
    "tiny-d": ("d", 2.0),
}
CANDIDATE = ("tiny-x", "x", 1.0)
SPARE = {"spare-1": 0.6, "spare-2": 1.1, "spare-3": 1.6}
"""Noise of checkpoints that no suite names yet; tests register them."""

TOPICS, WORDS_PER_TOPIC, DIM = 5, 24, 8
MODULE_PRELOAD = ["mteb", "sentence_transformers", "mteblite_assets.definitions"]


# --- the files ---------------------------------------------------------------------------------


def write_world(root: Path) -> Path:
    """Write data, models and a home with the suite file under `root`; return the home."""
    home = root / "home"
    (home / "suites").mkdir(parents=True)
    write_data(root / "data")
    for name, (_, noise) in REFERENCES.items():
        write_model(root / "models" / name, name, noise)
    write_model(root / "models" / CANDIDATE[0], CANDIDATE[0], CANDIDATE[2])
    for name, noise in SPARE.items():
        write_model(root / "models" / name, name, noise)
    write_suite(home, suite_document())
    return home


def suite_document() -> dict[str, Any]:
    """Return the suite file; paths count from the home's parent."""
    types = dict(zip(TASKS, ("STS", "Classification", "Retrieval"), strict=True))
    models = [
        {"name": name, "family": family, "path": f"models/{name}"}
        for name, (family, _) in REFERENCES.items()
    ]
    name, family, _ = CANDIDATE
    candidate = {"name": name, "family": family, "path": f"models/{name}", "role": "candidate"}
    return {
        "name": SUITE,
        "tasks": [{"task": t, "type": kind, "path": f"data/{t}"} for t, kind in types.items()],
        "k": 6,
        "pool": {"max_items": 40, "bm25_top": 5, "random_documents": 10},
        "models": [*models, candidate],
        "reference_scores": ["run"],
    }


def write_suite(home: Path, document: Mapping[str, Any]) -> Path:
    """Write a suite file into a home."""
    path = home / "suites" / f"{document['name']}.yaml"
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False))
    return path


def write_data(folder: Path) -> None:
    """Write the files of the three tasks."""
    rng = np.random.default_rng(7)
    latent = word_vectors()
    sts, topics, search = (folder / task for task in TASKS)
    for task in (sts, topics, search):
        task.mkdir(parents=True)
    pairs = []
    for _ in range(48):
        one, two = _text(rng, rng.integers(TOPICS)), _text(rng, rng.integers(TOPICS))
        if rng.random() < 0.5:
            two = " ".join([*one.split()[:2], *two.split()[2:]])
        likeness = _cosine(_meaning(one, latent), _meaning(two, latent))
        pairs.append({"sentence1": one, "sentence2": two, "score": round(2.5 + 2.5 * likeness, 1)})
    _write_lines(sts / "pairs.jsonl", pairs)
    for split, size in (("train", 60), ("test", 48)):
        labels = np.arange(size) % TOPICS
        rows = [{"text": _text(rng, t), "label": f"topic{t}"} for t in labels]
        _write_lines(topics / f"{split}.jsonl", rows)
    documents = [_text(rng, n % TOPICS, words=6) for n in range(60)]
    queries = [" ".join([*d.split()[:2], *_text(rng, 0).split()[:1]]) for d in documents[:40]]
    _write_lines(
        search / "corpus.jsonl", [{"_id": f"d{i}", "text": t} for i, t in enumerate(documents)]
    )
    _write_lines(
        search / "queries.jsonl", [{"_id": f"q{i}", "text": t} for i, t in enumerate(queries)]
    )
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(len(queries)))
    (search / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)


def write_model(folder: Path, seed: str, noise: float, *, nan: bool = False) -> Path:
    """Save a static sentence-transformers model that knows the words up to noise."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = _words()
    vocabulary = {word: i for i, word in enumerate([*words, "[UNK]"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    rng = np.random.default_rng(list(seed.encode()))
    known = np.array([word_vectors()[w] for w in words] + [np.zeros(DIM)])
    weights = (known + noise * rng.normal(size=known.shape)).astype(np.float32)
    if nan:
        weights[:] = np.nan
    shutil.rmtree(folder, ignore_errors=True)
    module = StaticEmbedding(tokenizer, embedding_weights=weights)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder), create_model_card=False)
    return folder


def word_vectors() -> dict[str, np.ndarray]:
    """Return the latent vector of every word: its topic's, and a little of its own."""
    rng = np.random.default_rng(11)
    centres = rng.normal(size=(TOPICS, DIM))
    return {
        word: centres[i // WORDS_PER_TOPIC] + 0.7 * rng.normal(size=DIM)
        for i, word in enumerate(_words())
    }


def _words() -> list[str]:
    return [f"word{i}" for i in range(TOPICS * WORDS_PER_TOPIC)]


def _text(rng: np.random.Generator, topic: int, words: int = 4) -> str:
    """A few words of a topic, one of them of any topic."""
    own = topic * WORDS_PER_TOPIC + rng.integers(WORDS_PER_TOPIC, size=words - 1)
    stray = rng.integers(TOPICS * WORDS_PER_TOPIC, size=1)
    return " ".join(f"word{i}" for i in [*own, *stray])


def _meaning(text: str, latent: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.mean([latent[w] for w in text.split()], axis=0)


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# --- running -----------------------------------------------------------------------------------


def use_home(monkeypatch: Any, home: Path) -> None:
    """Point this process at a home, with a Dagster instance of its own."""
    for name in ("DAGSTER_HOME", "MTEBLITE_CHECKPOINTS", "MTEBLITE_LOCAL_RESULTS"):
        monkeypatch.delenv(name, raising=False)
    # Session sets both; setting them here lets monkeypatch take them back.
    monkeypatch.setenv("DAGSTER_HOME", str(home / "dagster"))
    monkeypatch.setenv("MTEBLITE_HOME", str(home))


def command(*arguments: str) -> tuple[int, str, str]:
    """Run `mteblite` in this process as its console script would; exit code, stdout, stderr."""
    import io

    from mteblite_assets.cli.main import main

    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["mteblite", *arguments]
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        sys.argv = argv
    return code, out.getvalue(), err.getvalue()


def run_json(*arguments: str, expect: int = 0) -> Any:
    """Run a `mteblite` command with --json and return what it printed."""
    code, out, err = command("--quiet", *arguments, "--json")
    assert code == expect, f"exit {code}: {out[-2000:]}{err[-2000:]}"
    return json.loads(out)


def ran(report: Mapping[str, Any]) -> dict[str, list[str]]:
    """Partitions that ran, per asset; assets where none did are left out."""
    return {name: sorted(e["run"]) for name, e in report["assets"].items() if e["run"]}


def counts(report: Mapping[str, Any]) -> dict[str, int]:
    """How many partitions ran, per asset."""
    return {name: len(keys) for name, keys in ran(report).items()}


def table(home: Path, name: str, drop: Sequence[str] = ()) -> pd.DataFrame:
    """Return a published table, rows sorted by all columns that are not numbers."""
    from mteblite_resources.warehouse import Warehouse

    frame = Warehouse(home / "writer.duckdb", home / "mteblite.duckdb").query(
        f"SELECT * FROM {name}"
    )
    frame = frame.drop(columns=[c for c in frame if c in drop])
    for column in frame:
        if frame[column].map(lambda v: isinstance(v, list | np.ndarray)).any():
            frame[column] = frame[column].map(lambda v: json.dumps(list(v)))
    keys = [c for c in frame if not pd.api.types.is_float_dtype(frame[c])]
    return frame.sort_values(keys, ignore_index=True) if keys else frame


def start(home: Path, *arguments: str, log: Path | None = None) -> Any:
    """Start `mteblite` in a process of its own and return the process.

    It is forked from a server that has the heavy imports done: an own process with an own
    warehouse connection, Dagster instance and locks, without fifteen seconds of imports.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULE_PRELOAD)
    process = context.Process(target=_child, args=(str(home), arguments, str(log) if log else None))
    process.start()
    return process


def _child(home: str, arguments: Sequence[str], log: str | None) -> None:
    os.setsid()  # a terminal gives every command a process group, which Ctrl-C reaches whole
    os.environ.update(MTEBLITE_HOME=home, DAGSTER_HOME=f"{home}/dagster")
    with Path(log or os.devnull).open("a", buffering=1) as stream:
        sys.stdout = sys.stderr = stream
        for output in (1, 2):  # what child processes print, too
            os.dup2(stream.fileno(), output)
        from mteblite_assets.cli.main import main

        sys.argv = ["mteblite", *arguments]
        main()
