"""JSON files of a home: what was changed after it was written counts as absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mteblite.files import checked_json, read_json, write_json

VALUE = {"prompts": {"a": ["query: ", ""]}, "limit": 512, "similarity": "cosine", "pair": (1, 2)}
READ = {**VALUE, "pair": [1, 2]}


def test_a_json_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_json(tmp_path / "f.json", VALUE)
    assert read_json(tmp_path / "f.json") == READ
    assert read_json(tmp_path / "none.json") == {}


def test_a_changed_json_file_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_json(path, VALUE)
    path.write_text(path.read_text().replace("cosine", "dot"))
    assert read_json(path) == {}
    with pytest.raises(ValueError, match="it does not hold what was written"):
        checked_json(path.read_text())


def test_a_file_without_checksum_is_one_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(READ))
    assert read_json(path) == READ
    write_json(path, read_json(path))
    assert "checksum" in json.loads(path.read_text())
