"""Terms of a text for BM25: case-folded runs of letters and digits, in any script."""

from __future__ import annotations

import re
import unicodedata

_ARABIC_MARKS = "\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_DROPPED = re.compile(f"[{_ARABIC_MARKS}{_INVISIBLE}]+")
# Han, kana and Thai have no spaces between words: one token per character. In other scripts a
# token is a run of letters and digits. For `re`, South Asian vowel signs are not letters.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|(?:[^\W_]|[\u0900-\u0dff])+"
)
# The same for ASCII, without a regular expression: 5 times as fast. Most documents are ASCII.
_ASCII = "".join(chr(c).lower() if chr(c).isalnum() else " " for c in range(128))


def tokenize(text: str) -> list[str]:
    """Return the terms of a text: case-folded, without Arabic diacritics or invisible marks."""
    if text.isascii():
        return text.translate(_ASCII).split()
    return _TOKEN.findall(_DROPPED.sub("", unicodedata.normalize("NFKC", text)).casefold())
