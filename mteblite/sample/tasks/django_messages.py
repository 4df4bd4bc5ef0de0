"""Messages of Django's interface in English and Arabic, by Django's human translators.

A compiled catalogue (.mo) is a header and two tables of (length, offset); see GNU gettext's
manual, "The Format of GNU MO Files".
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from mteblite.sample.tasks.sampling import draw

N_SENTENCES = 240
MIN_WORDS = 4

_PLACEHOLDER = re.compile(r"%\([^)]*\)[#0 +-]*\d*[a-z]|%[sdif]|\{[^}]*\}")
_TAG = re.compile(r"<[^>]+>")


def parallel_sentences(folder: Path, members: list[str]) -> list[tuple[str, str]]:
    """Return 240 (English, Arabic) messages of at least four English words.

    Placeholders become X, and tags are removed. Plural messages are left out, because the two
    languages have different numbers of forms.

    Args:
        folder: Django's folder.
        members: relative paths of the .mo files; of two translations the first counts.
    """
    arabic_of: dict[str, str] = {}
    for member in members:
        for english, arabic in _read_mo(folder / member):
            pair = _clean(english.rsplit("\x04", 1)[-1]), _clean(arabic)
            if len(pair[0].split()) >= MIN_WORDS and pair[1] and pair[0] != pair[1]:
                arabic_of.setdefault(*pair)
    # A translation of two messages would have two correct answers. Only one message is kept.
    english_of = {arabic: english for english, arabic in sorted(arabic_of.items(), reverse=True)}
    return draw(((e, a) for a, e in english_of.items()), N_SENTENCES, "DjangoUI")


def _read_mo(path: Path) -> list[tuple[str, str]]:
    data = path.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, originals, translations = struct.unpack(f"{order}3I", data[8:20])
    rows = []
    for index in range(count):
        texts = []
        for table in (originals, translations):
            length, offset = struct.unpack_from(f"{order}2I", data, table + 8 * index)
            texts.append(data[offset : offset + length].decode("utf-8"))
        if texts[0] and "\x00" not in texts[0]:
            rows.append((texts[0], texts[1]))
    return rows


def _clean(text: str) -> str:
    return " ".join(_TAG.sub(" ", _PLACEHOLDER.sub("X", text)).split())
