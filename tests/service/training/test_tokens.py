from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.training.tokens import MAX_TOKENS, PAD, UNKNOWN, build_tokenizer, encode

TEXTS = ["很好 很好", "质量很好", "good phone good", "a good phone", "the phone is good", "质量 good"] * 3
TOKENIZER = build_tokenizer(TEXTS, 80)


def test_chinese_characters_are_tokens_of_their_own() -> None:
    """Neighbouring Chinese characters are never merged, also without spaces beside Latin text."""
    assert ["质", "量", "good", "很", "好"] == TOKENIZER.encode("质量GOOD很好").tokens


def test_special_tokens_come_first() -> None:
    """Padding is 0 and unknown is 1; a character never seen is unknown."""
    assert (0, 1) == (TOKENIZER.token_to_id(PAD), TOKENIZER.token_to_id(UNKNOWN))
    assert [[1]] == encode(TOKENIZER, ["龘"])


def test_links_and_handles_are_not_read() -> None:
    """A link or a handle leaves no token."""
    assert TOKENIZER.encode("good phone").tokens == TOKENIZER.encode("@someone good http://t.co/Ab1 phone").tokens


def test_long_texts_are_cut() -> None:
    """Not more than MAX_TOKENS come out, and nothing at all of an empty text."""
    assert [MAX_TOKENS, 0] == [len(ids) for ids in encode(TOKENIZER, ["好" * 2000, ""])]


@given(st.text(st.characters(codec="utf-8"), max_size=50))
def test_ids_are_inside_the_vocabulary(text: str) -> None:
    """Any text encodes to ids that the graph can look up."""
    assert all(0 <= identity < TOKENIZER.get_vocab_size() for identity in encode(TOKENIZER, [text])[0])


def test_the_same_texts_give_the_same_tokenizer() -> None:
    """Learning twice gives the same file."""
    assert TOKENIZER.to_str() == build_tokenizer(TEXTS, 80).to_str()
