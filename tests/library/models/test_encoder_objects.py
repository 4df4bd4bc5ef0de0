"""Loaded models: by which name their scores stand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mteblite.models.encoder_objects import object_encoder
from mteblite.models.encoders import EncodingSettings
from mteblite.vectors.store import VectorStore


class Wrapper:
    """Any object that encodes texts, with the names that its libraries gave it."""

    def __init__(self, meta: str | None, card: str | None) -> None:
        self.mteb_model_meta = SimpleNamespace(name=meta)
        self.model_card_data = SimpleNamespace(model_id=card)

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.ones((len(texts), 2))


@pytest.mark.parametrize(
    ("meta", "card", "name"),
    [
        ("org/by-mteb", "org/by-card", "org/by-mteb"),
        (None, "org/by-card", "org/by-card"),
        ("not | a name", "org/by-card", "org/by-card"),
        (None, None, "Wrapper"),
        (None, "not | a name", "Wrapper"),
    ],
)
def test_the_first_allowed_name_counts(
    tmp_path: Path, meta: str | None, card: str | None, name: str
) -> None:
    model, store = Wrapper(meta, card), VectorStore(tmp_path)
    with object_encoder(model, store, None, EncodingSettings(), lambda *_: None) as encoder:
        assert encoder.spec.name == name
