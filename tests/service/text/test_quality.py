"""Damaged, marked-up, encoded, repeated and empty texts are told by reason; what people write is not marked."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.contract import to_contract
from service.text.quality import REASONS, holds_image, language, quality_reason
from service.training.corpus import review_texts

CHINESE = "质量很好，物流也快，我很喜欢"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(200))).decode()
LETTERS = "aGVsbG8gd29ybGQ1" * 8

DAMAGED = {
    "replacement characters": ("很\ufffd\ufffd好", "replacement"),
    "replacement characters read as GBK": ("很锟斤拷好", "replacement"),
    "UTF-8 read as GBK": (CHINESE.encode().decode("gbk", "ignore"), "mojibake"),
    "UTF-8 read as Windows-1252": ("cafÃ© fine", "mojibake"),
    "a tag": ("good <br/> phone", "markup"),
    "an entity": ("good&nbsp;phone", "markup"),
    "entities without their marks": ("good nbsp;nbsp; phone", "markup"),
    "tags without their brackets": ("好 br br 不错", "markup"),
    "encoded bytes": (LETTERS, "base64"),
    "one word again and again": ("好" * 40, "repetition"),
    "two words again and again": ("一般！！" * 20, "repetition"),
    "white space": ("  \n ", "empty"),
    "punctuation": ("。。。！！", "empty"),
}


@pytest.mark.parametrize(("text", "reason"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_told_by_its_reason(text: str, reason: str) -> None:
    """Each kind by its own word."""
    assert reason == quality_reason(text)


@pytest.mark.parametrize(
    "text",
    [
        CHINESE,
        "联通很好",  # the famous two characters whose bytes in GBK are valid UTF-8
        "哈哈哈哈哈哈",
        "Good phone!!! Love it.",
        "电话13812345678",
        "He brings the spanner in the second class, and a divan",
        "a" * 20,
        "no no, not one on one; to no one ton",  # few letters, and not the same again and again
        "浣犲ソ",  # two characters read as GBK: too short to tell from Chinese
    ],
)
def test_what_people_write_is_not_marked(text: str) -> None:
    """Repeating a little, numbers, and words that look like tags are no fault."""
    assert quality_reason(text) is None


def test_real_reviews_are_nearly_never_marked() -> None:
    """Of 2,000 reviews of both languages at most four are; the alert's threshold is one in twenty."""
    texts = [text for text in map(to_contract, review_texts(2000, 3)) if text]

    assert sum(quality_reason(text) is not None for text in texts) <= 4


@given(st.text(max_size=300))
def test_any_text_has_a_known_reason_or_none(text: str) -> None:
    """Lone surrogates and controls included; nothing raises."""
    assert quality_reason(text) in (None, *REASONS)
    assert holds_image(text) in (True, False)


@pytest.mark.parametrize(
    ("head", "image"),
    [
        (b"\x89PNG\r\n\x1a\n", True),
        (b"GIF89a", True),
        (b"\xff\xd8\xff\xe0", True),
        (b"RIFF\0\0\0\0WEBP", True),
        (b"hello world", False),
    ],
)
def test_an_image_is_told_by_its_first_bytes(head: bytes, image: bool) -> None:
    """In the middle of a text as well; other encoded bytes are none."""
    assert image == holds_image("看图 " + base64.b64encode(head + bytes(range(120))).decode() + " 很好")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("好评", ("zh", 1.0)),
        ("good", ("en", 0.0)),
        ("", ("en", 0.0)),
        ("好good", ("mixed", 0.2)),
        ("很好很好很好很好很好很好a", ("zh", 12 / 13)),
    ],
)
def test_the_language_is_told_by_the_share_of_characters(text: str, expected: tuple[str, float]) -> None:
    """Nine tenths decide; between them it is mixed."""
    named, share = language(text)
    assert expected[0] == named
    assert share == pytest.approx(expected[1])
