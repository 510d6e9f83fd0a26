"""A dead letter tells what broke the contract and nothing about anybody; damaged files lose one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.deadletters.journal import Journal
from service.deadletters.letters import MOST_TEXT, Failure, letter_of, read_letters, remove_letters

TEXT = "请打13812345678，Tom's mail: tom@qq.com！"


def failure(body: bytes) -> Failure:
    """Return a failed request with this body."""
    return Failure("schema", 422, "illegal_characters", "text", "ab" * 16, body)


def document(text: object) -> bytes:
    """Return a body with this text."""
    return json.dumps({"text": text, "product_id": "AB12345678"}, ensure_ascii=False).encode()


def test_the_shape_of_a_text_shows_what_broke_the_contract() -> None:
    """Letters, digits and ideographs are blotted out; the marks between them are as they came."""
    letter = letter_of(failure(document(TEXT)), "shape", "1")

    assert "字字###########，aaa'a aaaa: ##########！" == letter["text"]
    assert {"phone": 1, "email": 1} == letter["masked"]
    assert ("schema", 422, "illegal_characters", "text") == tuple(
        letter[name] for name in ("link", "status", "reason", "field")
    )
    assert (len(TEXT), len(document(TEXT))) == (letter["text_length"], letter["body_bytes"])


def test_a_masked_text_keeps_its_words_alone() -> None:
    """By setting; personal data is out of it in the format that is asked for."""
    assert "请打[phone]，Tom's mail: [email]！" == letter_of(failure(document(TEXT)), "masked", "2")["text"]


@pytest.mark.parametrize("body", [b"", b"hello", b"[1]", b'{"text": 5}', b"[" * 20_000, b"\xff\xfe", b"null"])
def test_what_is_no_document_with_a_text_keeps_none_of_it(body: bytes) -> None:
    """Length and reason are all that is known of it."""
    letter = letter_of(failure(body), "masked", "1")
    assert (None, len(body)) == (letter["text"], letter["body_bytes"])


def test_a_long_text_is_cut() -> None:
    """And its length is told."""
    letter = letter_of(failure(document("a" * 5000)), "shape", "1")
    assert (MOST_TEXT, 5000) == (len(letter["text"]), letter["text_length"])


@given(st.text(max_size=200))
def test_no_letter_or_digit_but_the_stand_ins_is_in_a_shape(text: str) -> None:
    """Of any script."""
    shape = letter_of(failure(document(text)), "shape", "1")["text"]
    json.dumps(shape)
    assert {one for one in shape if one.isalpha()} <= {"a", "字"}
    assert {one for one in shape if one.isdecimal()} <= {"0"}


@pytest.mark.parametrize(
    ("text", "shape"),
    [("٣५𝟡９", "0000"), ("ⒶⓏⓐ⒜①", "aaaaa"), ("🄰🅐🅰🇨🇳", "aaaaa"), ("'👍★", "'👍★")],
    ids=["digits", "circled", "squared and flags", "other symbols"],
)
def test_digits_of_other_scripts_and_enclosed_letters_are_not_in_a_shape(text: str, shape: str) -> None:
    """Arabic, Devanagari and mathematical ones are as legible as ASCII's."""
    assert shape == letter_of(failure(document(text)), "shape", "1")["text"]


@pytest.mark.parametrize("zero", ["٠", "०", "𝟎", "０"], ids=["Arabic", "Devanagari", "mathematical", "full-width"])
def test_a_number_in_the_digits_of_another_script_is_masked(zero: str) -> None:
    """It is the same number."""
    number = "".join(chr(ord(zero) + int(one)) for one in "13812345678")
    assert "请打[phone]！" == letter_of(failure(document(f"请打{number}！")), "masked", "2")["text"]


def test_letters_come_back_and_a_torn_line_is_counted(tmp_path: Path) -> None:
    """Its writer was killed in the middle; a second file is as good as ever."""
    for _ in range(2):
        journal = Journal(tmp_path, "letters")
        journal.put(lambda: letter_of(failure(document("a'b")), "shape", "1"))
        journal.close()
    first = min(tmp_path.iterdir())
    first.write_bytes(first.read_bytes() + b'{"format":1,"id":"0')
    (tmp_path / "letters-9-x.jsonl").write_bytes(b'nonsense\n{"lost":3}\n[]\n' + b"[" * 5000 + b"\n")

    kept = read_letters(tmp_path)

    assert (2, 3, 4) == (len(kept.letters), kept.lost, kept.unreadable)
    assert kept.size_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_folder_that_is_not_there_holds_none_and_a_full_one_can_be_emptied(tmp_path: Path) -> None:
    """Only letters are removed."""
    assert () == read_letters(tmp_path / "none").letters
    (tmp_path / "letters-1-x.jsonl").write_bytes(b"{}\n")
    (tmp_path / "other").write_bytes(b"x")

    assert 3 == remove_letters(tmp_path)
    assert ["other"] == [path.name for path in tmp_path.iterdir()]
