"""The vector store: what goes in comes out, whoever else writes and whatever breaks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from mteblite.vectors.keys import text_keys
from mteblite.vectors.store import DamagedShardError, VectorStore

ROOT = Path(__file__).parents[3]


def vectors(n: int, dim: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def texts(n: int, prefix: str = "text") -> list[str]:
    return [f"{prefix} {i}" for i in range(n)]


def missing(store: VectorStore, model: str, prompt: str, asked: list[str]) -> np.ndarray:
    return store.locate(model, prompt, asked).absent


def only_shard(store: VectorStore) -> Path:
    (path,) = store.root.glob("*/*/*.npy")
    return path


def test_round_trip_in_any_order(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", texts(50), vectors(50))
    store.put("m", "p", texts(50, "more"), vectors(50, seed=1))
    asked = [*[*texts(50, "more"), *texts(50)][::-3], "text 7", "text 7"]
    expected = np.concatenate([vectors(50, seed=1), vectors(50)])[::-3]
    got = store.get("m", "p", asked)
    np.testing.assert_array_equal(got[:-2], expected)
    np.testing.assert_array_equal(got[-2:], vectors(50)[[7, 7]])
    assert got.dtype == np.float32
    assert len(list(tmp_path.glob("*/*/*.npy"))) == 2


def test_models_and_prompts_are_apart(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", ["a"], vectors(1))
    assert missing(store, "m", "p", ["a", "b"]).tolist() == [1]
    assert missing(store, "m", "q", ["a"]).tolist() == [0]
    assert missing(store, "n", "p", ["a"]).tolist() == [0]


def test_stored_texts_keep_their_vector(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    assert store.put("m", "p", ["a", "b", "a"], vectors(3)) == 2
    assert store.put("m", "p", ["b", "c"], vectors(2, seed=1)) == 1
    np.testing.assert_array_equal(store.get("m", "p", ["a", "b"]), vectors(3)[:2])
    np.testing.assert_array_equal(store.get("m", "p", ["c"]), vectors(2, seed=1)[1:])


def test_equal_vectors_of_other_texts(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    zero = np.zeros((1, 3), np.float32)
    store.put("m", "p", ["unknown"], zero)
    store.put("m", "p", ["also unknown"], zero)
    np.testing.assert_array_equal(
        store.get("m", "p", ["also unknown", "unknown"]), np.zeros((2, 3))
    )


def test_odd_texts(tmp_path: Path) -> None:
    odd = ["", " ", "\ud800 lone surrogate", "a\0b", "مَرْحَبًا", "x" * 100_000]
    store = VectorStore(tmp_path)
    store.put("m", "p", odd, vectors(len(odd)))
    np.testing.assert_array_equal(store.get("m", "p", odd), vectors(len(odd)))
    assert len(set(text_keys(odd).tolist())) == len(odd)


def test_nothing_asked_nothing_given(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    assert len(store.get("m", "p", [])) == 0
    assert len(missing(store, "m", "p", [])) == 0


def test_missing_texts_are_counted_in_the_error(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", ["a"], vectors(1))
    with pytest.raises(KeyError, match=r"2 of 3 texts are not stored.*'b'"):
        store.get("m", "p", ["a", "b", "c"])


def test_bad_vectors_are_refused(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    with pytest.raises(ValueError, match="one row per text"):
        store.put("m", "p", ["a", "b"], vectors(1))
    bad = vectors(2)
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 of 2 vectors hold NaN.*'b'"):
        store.put("m", "p", ["a", "b"], bad)
    store.put("m", "p", ["a"], vectors(1))
    with pytest.raises(ValueError, match=r"width 5 .*width 4 is stored"):
        store.put("m", "p", ["b"], vectors(1, dim=5))
    assert missing(store, "m", "p", ["a", "b"]).tolist() == [1]


@pytest.mark.parametrize("damage", ["truncated", "altered", "gone", "garbage"])
def test_damage_is_named_dropped_and_mended(tmp_path: Path, damage: str) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", texts(20), vectors(20))
    store.put("n", "p", ["other model"], vectors(1))
    shard = next((tmp_path / "m" / "p").glob("*.npy"))
    whole = shard.read_bytes()
    if damage == "truncated":
        shard.write_bytes(whole[:-40])
    elif damage == "altered":
        shard.write_bytes(whole[:-4] + b"\x01\x02\x03\x04")
    elif damage == "garbage":
        shard.write_bytes(b"no array")
    else:
        shard.unlink()
    with pytest.raises(DamagedShardError, match=shard.name):
        store.get("m", "p", texts(20))
    assert len(missing(store, "m", "p", texts(20))) == 20
    store.put("m", "p", texts(20), vectors(20))
    np.testing.assert_array_equal(store.get("m", "p", texts(20)), vectors(20))
    np.testing.assert_array_equal(store.get("n", "p", ["other model"]), vectors(1))


def test_a_copied_store_is_read(tmp_path: Path) -> None:
    VectorStore(tmp_path / "a").put("m", "p", texts(5), vectors(5))
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copy)
    os.utime(only_shard(VectorStore(tmp_path / "b")), (1, 1))
    np.testing.assert_array_equal(VectorStore(tmp_path / "b").get("m", "p", texts(5)), vectors(5))


def test_crash_between_shard_and_keys_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", ["a"], vectors(1))

    def killed(*_: object) -> None:
        raise OSError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr("mteblite.vectors.store.write_keys", killed)
        with pytest.raises(OSError, match="killed here"):
            store.put("m", "p", texts(9), vectors(9))
    assert len(list(tmp_path.glob("*/*/*.npy"))) == 2
    again = VectorStore(tmp_path)
    assert len(missing(again, "m", "p", ["a", *texts(9)])) == 9
    again.put("m", "p", texts(9), vectors(9))
    np.testing.assert_array_equal(again.get("m", "p", texts(9)), vectors(9))


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty"])
def test_a_damaged_key_file_is_removed_and_its_texts_are_missing(
    tmp_path: Path, damage: str
) -> None:
    VectorStore(tmp_path).put("m", "p", texts(20), vectors(20))
    (keys,) = tmp_path.glob("*/*/*.keys")
    whole = keys.read_bytes()
    keys.write_bytes({"truncated": whole[:-16], "altered": whole[::-1], "empty": b""}[damage])
    store = VectorStore(tmp_path)
    assert len(missing(store, "m", "p", texts(20))) == 20
    store.put("m", "p", texts(20), vectors(20))
    np.testing.assert_array_equal(store.get("m", "p", texts(20)), vectors(20))


@pytest.mark.parametrize("process", ["same", "next"])
def test_bits_that_flip_while_size_and_time_stay_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    VectorStore(tmp_path).put("m", "p", texts(20), vectors(20))
    shard = only_shard(VectorStore(tmp_path))
    time.sleep(0.05)  # longer than a tick of the file system's clock
    time_kept, content = shard.stat().st_mtime_ns, bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    os.utime(shard, ns=(time_kept, time_kept))
    if process == "next":
        monkeypatch.setattr("mteblite.vectors.shards._VERIFIED", {})
    with pytest.raises(DamagedShardError, match=shard.stem):
        VectorStore(tmp_path).get("m", "p", texts(20))


def test_another_writer_is_seen_by_an_open_store(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.put("m", "p", ["a"], vectors(1))
    assert len(missing(store, "m", "p", ["b"])) == 1
    VectorStore(tmp_path).put("m", "p", ["b"], vectors(1, seed=1))
    np.testing.assert_array_equal(store.get("m", "p", ["b"]), vectors(1, seed=1))


def test_two_processes_writing_lose_nothing(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        import numpy as np
        from mteblite.vectors.store import VectorStore
        store, who = VectorStore(Path(sys.argv[1])), int(sys.argv[2])
        for i in range(15):
            # Every second text is written by both.
            numbers = [4 * i + 2 * who, 4 * i + 1]
            rows = np.array([[n, n + 1] for n in numbers], np.float32)
            store.put("m", "p", [f"text {n}" for n in numbers], rows)
    """)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen([*command, str(who)], env=environment) for who in (0, 1)]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    numbers = sorted(n for i in range(15) for n in (4 * i, 4 * i + 1, 4 * i + 2))
    got = VectorStore(tmp_path).get("m", "p", [f"text {n}" for n in numbers])
    np.testing.assert_array_equal(got, [[n, n + 1] for n in numbers])


def test_two_hundred_thousand_vectors_come_back_quickly(tmp_path: Path) -> None:
    store, many = VectorStore(tmp_path), texts(200_000)
    values = np.zeros((len(many), 384), np.float32)
    values[:, 0] = np.arange(len(many))
    for start in range(0, len(many), 50_000):
        block = slice(start, start + 50_000)
        # Rows differ between blocks, so the shards do.
        store.put("m", "p", many[block], values[block])
    start_cpu = time.process_time()
    got = store.get("m", "p", many)
    seconds = time.process_time() - start_cpu
    np.testing.assert_array_equal(got[:, 0], np.arange(len(many)))
    # 0.3 to 1.2 CPU seconds when written; the bound is for the order of magnitude.
    assert seconds < 5
