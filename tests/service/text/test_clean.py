from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from service.text.clean import (
    FINGERPRINT,
    STEPS,
    clean,
    collapse_white_space,
    drop_controls,
    drop_invisible,
    drop_markup,
    fingerprint,
    fold_width,
    repair_encoding,
)

# Pieces that steps act on, so that random texts hold many of them side by side and inside one another.
PIECES = st.sampled_from(
    [
        *"ÃÂ©â€œ\x9d\x80\xadï»¿ðŸ",
        *"\ud83d\udc00\ufffd\u200b\ufeff\x00\x85\u3000Ａ＜＞＆＃；＠．<>&;#@./aB1好坏，。！!,\n\t ",
        *("锟斤拷", "</", "b>", "amp;", "&amp;", "&#38;", "@a", "www.", "http://", "https://x"),
    ]
)
ANY_TEXT = st.text(st.characters(), max_size=60) | st.lists(PIECES, max_size=25).map("".join)


@given(ANY_TEXT)
@settings(max_examples=500)
@example("Ã\u200b©")
@example("<a <b> c>")
@example("&am&amp;p;")
@example("＆ａｍｐ；")
@example("ÃƒÂ©")
@example("ï»¿x")
@example("à\xad\xad")
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    """A cleaned text stays as it is, whatever it was made of; lone surrogates included."""
    once = clean(text)

    assert once == clean(once)


@pytest.mark.parametrize(("name", "step"), [(name, step) for name, _version, step in STEPS])
@given(ANY_TEXT)
def test_each_step_alone_takes_any_text_and_settles(name: str, step, text: str) -> None:  # type: ignore[no-untyped-def]
    """Each step works on its own, for any string, and a second pass finds nothing left to do."""
    once = step(text)

    assert once == step(once), name


@given(ANY_TEXT)
def test_a_cleaned_text_can_be_stored_and_sent(text: str) -> None:
    """What leaves the cleaning encodes as UTF-8 and holds no control, replacement or angle bracket."""
    cleaned = clean(text)

    assert cleaned == cleaned.encode("utf-8").decode("utf-8")
    assert not [c for c in cleaned if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\ufffd<>"]


@pytest.mark.parametrize("text", ["质量不错，下次再来！", "good phone. works: yes; no?", "1 2 3", "è mesi — déjà vu ñ"])
def test_a_proper_text_is_left_alone(text: str) -> None:
    """Cleaning does not touch what is not broken, accents of other languages included."""
    assert text == clean(text)


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("cafÃ©", "café"),
        ("itâ€™s", "it’s"),
        ("itâ\x80\x99s", "it’s"),
        ("ÃƒÂ©", "é"),
        ("æ¬¢è¿Ž", "欢迎"),
        ("ï»¿x", " x"),
        ("ðŸ˜€", "😀"),
        ("VOILÀ— CAFÉ—", "VOILÀ— CAFÉ—"),
        ("差\ufffd\ufffd评", "差 评"),
        ("好锟斤拷评", "好 评"),
        ("a\ud800b", "a b"),
    ],
)
def test_broken_encodings_are_read_back_or_blanked(broken: str, whole: str) -> None:
    """UTF-8 read as Windows-1252 or Latin-1 comes back, twice broken too; what is lost is a space."""
    assert whole == repair_encoding(broken)


@given(st.text(st.characters(codec="utf-8", min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=20))
def test_chinese_read_as_latin_1_comes_back(text: str) -> None:
    """Any Chinese text that went through the wrong decoder is restored exactly."""
    # that trio is damage whichever way it comes
    assume("锟斤拷" not in text)
    assert text == repair_encoding(text.encode("utf-8").decode("latin-1"))


def test_a_text_that_was_broken_many_times_comes_back() -> None:
    """Each wrong decoding on top of another is undone, however many there were."""
    text = "é好"
    for _ in range(8):
        text = text.encode("utf-8").decode("latin-1")

    assert "é好" == repair_encoding(text)


def test_width_is_folded_but_chinese_marks_stay() -> None:
    """Full-width letters, digits and symbols become ASCII; Chinese punctuation is Chinese in its own right."""
    assert "ABCxyz019#. ，！？；：。、" == fold_width("ＡＢＣｘｙｚ０１９＃．\u3000，！？；：｡､")


def test_markup_links_and_handles_become_spaces() -> None:
    """Tags, entities, links and handles go; a comparison sign goes, the text around a link stays."""
    assert ["a b", "c", "看 很好", "hi", "1 2"] == [
        " ".join(drop_markup(text).split())
        for text in ("<p class='x'>a</p>&nbsp;b<br/>", "&#x41;c", "看http://t.cn/Ab1?x=1很好", "@some_one hi", "1<2")
    ]


def test_invisible_characters_vanish_and_controls_become_spaces() -> None:
    """Zero-width characters join what they parted; controls part what they stood between."""
    assert ("质量", "a b c") == (drop_invisible("质\u200b\ufeff量"), drop_controls("a\x00b\x9fc"))


def test_white_space_is_one_space() -> None:
    """Every run of white space, of any kind, is one space, and none is left at the ends."""
    assert "a b c" == collapse_white_space(" a\u2003\r\n b\x85\tc\u3000")


def test_the_fingerprint_follows_what_the_steps_do() -> None:
    """Another order, version or behaviour has another fingerprint; the same steps have the same one."""
    name, version, _step = STEPS[0]
    others = [
        tuple(reversed(STEPS)),
        ((name, version + 1, STEPS[0][2]), *STEPS[1:]),
        ((name, version, lambda text: text), *STEPS[1:]),
        STEPS[:-1],
    ]

    assert FINGERPRINT == fingerprint(STEPS)
    assert 5 == len({FINGERPRINT, *(fingerprint(steps) for steps in others)})
