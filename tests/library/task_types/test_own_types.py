"""Own data of every type is checked when its task is described, before anything is encoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.own_tables import Rows, write_table

from mteblite.task_types.own_files import content_revision
from mteblite.task_types.registry import find_type
from mteblite.task_types.task_type import OwnRead
from mteblite.tasks.own_tasks import describe_own

CORPUS = [{"_id": f"d{n}", "title": "", "text": f"document {n}"} for n in range(4)]
QUERIES = [{"_id": f"q{n}", "text": f"question {n}"} for n in range(3)]
QRELS = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in range(3)]
LISTS = [{"query-id": f"q{n}", "corpus-ids": [f"d{n}", "d3"]} for n in range(3)]
LABELLED = [{"text": f"text {n}", "label": "yes" if n % 2 else "no"} for n in range(6)]
PAIRS = [
    {"sentence1": f"one {n}", "sentence2": f"two {n}", "score": n / 2, "label": n % 2}
    for n in range(4)
]
SEARCH = {"corpus": CORPUS, "queries": QUERIES, "qrels/test": QRELS}
DATA: dict[str, dict[str, Rows]] = {
    "Retrieval": SEARCH,
    "Reranking": SEARCH | {"top_ranked": LISTS},
    "Classification": {"train": LABELLED, "test": LABELLED[:2]},
    "STS": {"test": PAIRS},
    "PairClassification": {"pairs": PAIRS},
    "BitextMining": {"test": PAIRS},
}
TEXTS = [
    (kind, table, column)
    for kind, tables in DATA.items()
    for table, rows in tables.items()
    for column in ("text", "title", "sentence1", "sentence2")
    if column in rows[0]
]


def changed(rows: Rows, row: int, **values: Any) -> Rows:
    return [{**r, **values} if n == row else r for n, r in enumerate(rows)]


def read(folder: Path, kind: str, suffix: str = ".jsonl", **tables: Rows | None) -> OwnRead:
    """Write the type's tables, some of them replaced or left out, and describe and read them."""
    for name, rows in (DATA[kind] | {k.replace("__", "/"): v for k, v in tables.items()}).items():
        if rows is not None:
            write_table(folder / f"{name}{suffix}", rows)
    describe_own("Ours", kind, folder, None, None, ())
    own = find_type(kind).own_data
    assert own is not None
    return own.read("Ours", folder, ["test"])


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".jsonl.gz"])
@pytest.mark.parametrize("kind", DATA)
def test_well_formed_data_need_no_note(tmp_path: Path, kind: str, suffix: str) -> None:
    found = read(tmp_path, kind, suffix)
    assert found.data
    assert found.notes == (
        []
        if kind != "Classification"
        else [f"test{suffix}: texts that are also in the train split: 2 of 2"]
    )


@pytest.mark.parametrize(("kind", "table", "column"), TEXTS)
@pytest.mark.parametrize("value", [["a"], True, 5])
def test_no_text_of_any_type_may_be_something_else(
    tmp_path: Path, kind: str, table: str, column: str, value: Any
) -> None:
    rows = changed(DATA[kind][table], 1, **{column: value})
    rows = changed(rows, 0, **{column: "a text"})
    with pytest.raises(ValueError, match=rf"^Ours: .*{table}.jsonl, line 2: column '{column}' is "):
        read(tmp_path, kind, **{table.replace("/", "__"): rows})


@pytest.mark.parametrize(
    ("kind", "column", "value", "message"),
    [
        ("STS", "score", 3, "every score is 3; a correlation"),
        ("PairClassification", "label", 1, "every label is 1; average precision"),
        ("Classification", "label", "no", "every label is 'no'; a classifier"),
    ],
)
def test_gold_that_never_changes_is_refused(
    tmp_path: Path, kind: str, column: str, value: Any, message: str
) -> None:
    tables = {name: [{**r, column: value} for r in rows] for name, rows in DATA[kind].items()}
    with pytest.raises(ValueError, match=message):
        read(tmp_path, kind, **tables)


def labels(values: list[Any]) -> Rows:
    return [{"text": f"other {n}", "label": value} for n, value in enumerate(values)]


def test_digits_in_one_split_and_numbers_in_the_other_are_one_label(tmp_path: Path) -> None:
    found = read(tmp_path, "Classification", train=labels([0, 1, -2]), test=labels(["1", "-2"]))
    assert found.data["test"]["label"] == [1, -2]
    assert found.notes[0].startswith("test.jsonl, line 1: label '1' is a text and others are num")


@pytest.mark.parametrize("test", [["1", "01"], ["one"], [True]])
def test_labels_of_two_types_are_refused(tmp_path: Path, test: list[Any]) -> None:
    message = r"test.jsonl, line 1: label .* but 0 in train.jsonl, line 1, is a number; expected"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "Classification", train=labels([0, 1]), test=labels(test))


def test_a_label_that_the_train_split_lacks_is_noted(tmp_path: Path) -> None:
    found = read(tmp_path, "Classification", test=labels(["yes", "new", "new"]))
    assert found.notes == [
        "test.jsonl: label 'new' is not in the train split (rows with it: 2): a classifier cannot "
        "find it, as in mteb"
    ]


def test_a_split_or_table_that_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no train table; .*the folder holds: test.jsonl"):
        read(tmp_path, "Classification", train=None)


def test_folders_of_datasets_and_windows_paths_are_explained(tmp_path: Path) -> None:
    write_table(tmp_path / "corpus/corpus-00000-of-00001.parquet", CORPUS)
    with pytest.raises(ValueError, match=r"corpus is a folder of `datasets`: .*corpus.parquet'"):
        read(tmp_path, "Retrieval", corpus=None)
    with pytest.raises(ValueError, match=r"is no folder; write it with / instead of"):
        describe_own("Ours", "Retrieval", tmp_path / "data\\qa", None, None, ())


def qrel(query: str, document: str, score: Any) -> dict[str, Any]:
    return {"query-id": query, "corpus-id": document, "score": score}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_two_scores_of_one_pair_are_refused_and_equal_ones_count_once(
    tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "same").mkdir()
    found = read(tmp_path / "same", "Retrieval", suffix, qrels__test=[*QRELS, QRELS[1]])
    assert found.data["splits"]["test"]["judged"]["q1"] == {"d1": 1}
    word = "rows" if suffix == ".parquet" else "lines"
    with pytest.raises(ValueError, match=f"{word} 2 and 4: query 'q1' and document 'd1' have the"):
        read(tmp_path, "Retrieval", suffix, qrels__test=[*QRELS, qrel("q1", "d1", 0)])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([qrel("q0", "d0", 0), qrel("q1", "d1", -1)], "no score is above 0 .the highest is 0."),
        ([qrel("q9", "d0", 1)], "line 1: id 'q9' is not in the queries, nor is any other"),
        ([qrel("q0", "d9", 1)], "line 1: id 'd9' is not in the corpus, nor is any other"),
        ([*QRELS, qrel("q0", "d3", 0.5)], "line 4: score 0.5 is no whole number"),
    ],
)
def test_judgements_by_which_nothing_can_be_scored_are_refused(
    tmp_path: Path, rows: Rows, message: str
) -> None:
    with pytest.raises(ValueError, match=f"qrels/test.jsonl.*{message}"):
        read(tmp_path, "Retrieval", qrels__test=rows)


def test_judgements_of_what_is_not_there_are_counted(tmp_path: Path) -> None:
    rows = [QRELS[0], qrel("q9", "d0", 1), qrel("q0", "d9", 1), qrel("q1", "d1", -1)]
    found = read(tmp_path, "Retrieval", qrels__test=rows)
    assert found.data["splits"]["test"]["judged"] == {"q0": {"d0": 1, "d9": 1}, "q1": {"d1": -1}}
    assert [note.split(":")[0] for note in found.notes] == [
        "test.jsonl, line 2", "test.jsonl, line 3", "test.jsonl", "test.jsonl"
    ]  # fmt: skip
    assert "queries without a judgement: 1" in found.notes[2]
    assert "queries without a score above 0: 1" in found.notes[3]


def test_ids_join_as_numbers_and_texts_and_repeats_need_one_text(tmp_path: Path) -> None:
    corpus = [{"_id": n, "text": f"document {n}"} for n in range(3)]
    qrels = [qrel("q0", "0", 1)]
    found = read(tmp_path, "Retrieval", corpus=[*corpus, corpus[1]], qrels__test=qrels)
    assert found.data["corpus"]["id"] == ["0", "1", "2"]
    other = [*corpus, {"_id": "1", "text": "another"}]
    with pytest.raises(ValueError, match="lines 2 and 4: id '1' is there more than once"):
        read(tmp_path, "Retrieval", corpus=other, qrels__test=qrels)


def test_a_candidate_that_a_list_has_twice_counts_once(tmp_path: Path) -> None:
    lists = changed(LISTS, 1, **{"corpus-ids": ["d3", "d1", "d3"]})
    found = read(tmp_path, "Reranking", top_ranked=lists)
    assert found.data["splits"]["test"]["ranked"]["q1"] == ["d3", "d1"]
    assert found.notes == [
        "top_ranked.jsonl: candidates that a list has twice: 1; they count once, as in mteb"
    ]


def test_the_revision_of_unchanged_data_stays(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b'{"_id": "1", "text": "a"}\n')
    (tmp_path / "qrels.tsv").write_bytes(b"query-id\tcorpus-id\tscore\n1\t1\t1\n")
    files = [tmp_path / "corpus.jsonl", tmp_path / "qrels.tsv"]
    assert content_revision(files) == "607ff71a66fbc0ce"
