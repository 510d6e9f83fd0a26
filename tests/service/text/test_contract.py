from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.clean import clean
from service.text.contract import (
    ALLOWED_PATTERN,
    MAX_CHARACTERS,
    ContractShare,
    contract_share,
    fits_contract,
    illegal_characters,
    to_contract,
)

ANY_TEXT = st.text(st.characters(), max_size=80)


@pytest.mark.parametrize(
    "text",
    ["很好", "Good 123", "a.b,c!d?e;f:g", "，。！？；：．", " \t\r\n\u3000a", "㐀〇龥", "ＡＢＣａ１", "a" * 1024],
)
def test_what_row_b1_allows_fits(text: str) -> None:
    """Chinese and English letters, digits, white space and the six marks in both forms pass, up to 1,024 characters."""
    assert fits_contract(text)
    assert [] == illegal_characters(text)


@pytest.mark.parametrize(
    ("text", "illegal"),
    [
        ("it's", ["U+0027"]),
        ('"a"', ["U+0022"]),
        ("a@b#c/d(e)", ["U+0040", "U+0023", "U+002F", "U+0028", "U+0029"]),
        ("、…“", ["U+3001", "U+2026", "U+201C"]),
        ("😀😀", ["U+1F600"]),
        ("é", ["U+00E9"]),
        ("a\x00b", ["U+0000"]),
        ("\ud800", ["U+D800"]),
        ("a\x0bb\x1cc\x85d\u2028e\xa0f\ufeff", ["U+000B", "U+001C", "U+0085", "U+2028", "U+00A0", "U+FEFF"]),
        ("\U00020000", ["U+20000"]),
    ],
)
def test_what_row_b1_does_not_name_is_refused_by_code_point(text: str, illegal: list[str]) -> None:
    """Everything else is refused, each character once, under a name that is safe to print."""
    assert illegal == illegal_characters(text)
    assert not fits_contract(text)


@pytest.mark.parametrize(
    "code",
    [
        *(0x2F, 0x3C, 0x40, 0x5B, 0x60, 0x7B, 0xFF0D, 0xFF0F, 0xFF20, 0xFF3B, 0xFF40, 0xFF5B),
        *(0x3001, 0x3006, 0x3008, 0x33FF, 0x4DC0, 0x4DFF, 0xA000, 0xF900),
    ],
)
def test_the_neighbours_of_what_is_allowed_are_refused(code: int) -> None:
    """Just beyond each range nothing passes."""
    assert not fits_contract(chr(code))


@pytest.mark.parametrize("text", ["", "a" * 1025, "a" * 1024 + "\n"])
def test_length_is_part_of_the_contract(text: str) -> None:
    """No character, or more than 1,024, does not fit; a line end behind the last one counts."""
    assert not fits_contract(text)
    assert [] == illegal_characters(text)


def test_the_list_of_illegal_characters_is_bounded() -> None:
    """However many different characters are wrong, the answer stays short."""
    assert 10 == len(illegal_characters("".join(map(chr, range(0x100, 0x2000)))))


@given(ANY_TEXT)
def test_pattern_and_functions_agree(text: str) -> None:
    """The published pattern, the list of illegal characters and the verdict never contradict each other."""
    matches = re.search(ALLOWED_PATTERN, text) is not None and bool(text)

    assert matches == (bool(text) and illegal_characters(text) == [])
    assert fits_contract(text) == (matches and len(text) <= MAX_CHARACTERS)


def test_the_pattern_is_plain_enough_for_other_languages() -> None:
    r"""The pattern uses nothing that ECMA-262 reads otherwise: only \t \n \r and \uXXXX escapes, in one class."""
    assert set() == set(re.findall(r"\\(?!u[0-9A-F]{4}|[tnr])", ALLOWED_PATTERN))
    assert re.fullmatch(r"\^\[[^\[\]^]+\]\+\$", ALLOWED_PATTERN)


@given(ANY_TEXT)
def test_a_text_made_to_fit_fits_and_stays(text: str) -> None:
    """Whatever came in, what comes out fits the contract or is empty, and is left alone the second time."""
    made = to_contract(text)

    assert made == "" or fits_contract(made)
    assert made == to_contract(made)


@given(st.from_regex(ALLOWED_PATTERN, fullmatch=True))
def test_serving_reads_a_text_as_training_did(text: str) -> None:
    """For whatever the contract lets through, the cleaning that serves gives what training was shown."""
    assert to_contract(text, None) == clean(text)


@given(st.text(st.sampled_from("好a ，'😀"), min_size=1000, max_size=1100))
def test_long_texts_are_cut_to_the_limit(text: str) -> None:
    """A long review keeps its beginning, at most 1,024 characters, without a space at the end."""
    made, whole = to_contract(text), to_contract(text, None)

    assert whole.startswith(made)
    assert made == whole[:MAX_CHARACTERS].rstrip()


def test_marks_with_a_kin_keep_their_sense() -> None:
    """The enumeration comma becomes a comma, the ellipsis a full stop, other marks a space."""
    assert "屏幕，键盘 好 很好。 don t" == to_contract("屏幕、键盘《好》很好… don't")


def test_the_share_is_counted_before_and_after() -> None:
    """Texts that fit as they came, and texts that fit after cleaning, are counted over all texts."""
    assert ContractShare(4, 0.25, 0.75) == contract_share(["很好", "it's", "“好”", "😀"])
    assert ContractShare(0, 0.0, 0.0) == contract_share([])
