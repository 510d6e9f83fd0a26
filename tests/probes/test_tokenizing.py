"""What a real tokenizer does with a batch is told, in numbers and in the requests' rows; caches and loads as well."""

from __future__ import annotations

import functools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from probes import Recorder
from probes.reader import RingFile
from probes.tokenizing import BatchReading, CacheReading, Loads, TokenizerProbe, padding_side, read_batch, read_cache

UNKNOWN = "[UNK]"


def words(side: str | None = "right", length: int | None = None, most: int | None = None) -> Tokenizer:
    """Return a tokenizer of one token for each word."""
    tokenizer = Tokenizer(WordLevel({"[PAD]": 0, UNKNOWN: 1}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    if side is not None:
        tokenizer.enable_padding(direction=side, length=length)
    if most is not None:
        tokenizer.enable_truncation(most)
    return tokenizer


def text(count: int) -> str:
    """Return a text of so many words."""
    return " ".join(["word"] * count)


def read(tokenizer: Tokenizer, *counts: int) -> BatchReading:
    """Return what a tokenizer makes of texts of so many words."""
    _, reading, seconds = TokenizerProbe(tokenizer).encode_batch([text(count) for count in counts])
    assert reading is not None
    assert seconds > 0
    return reading


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_row_that_all_were_padded_for_is_named(side: str) -> None:
    """One of 50 words among three of 10: 120 of 200 slots are padding, and without it there were none."""
    found = read(words(side), 10, 50, 10, 10)

    assert ((10, 50, 10, 10), 50, side) == (found.tokens, found.width, found.side)
    assert (0.6, 1, 0.6) == (found.padding_ratio, found.culprit, found.culprit_ratio)


@pytest.mark.parametrize("counts", [(20, 20, 20), (20, 20, 5)])
def test_equally_long_texts_have_no_culprit(counts: tuple[int, ...]) -> None:
    """Whether or not a shorter one is padded."""
    assert read(words(), *counts).culprit is None


def test_a_fixed_width_has_no_culprit() -> None:
    """A setting is at fault then, and no text."""
    found = read(words(length=64), 10, 50)

    assert (64, None, 68 / 128) == (found.width, found.culprit, found.padding_ratio)


def test_cut_texts_are_told() -> None:
    """Those alone that were longer than the bound."""
    assert (False, True, False) == read(words(most=8), 3, 9, 8).truncated


def test_without_padding_there_is_no_side_and_rows_differ() -> None:
    """The slots are those of a tensor that would hold them."""
    found = read(words(None), 3, 9)

    assert (9, None, (3, 9)) == (found.width, found.side, found.tokens)


def test_an_empty_batch_has_no_reading_and_an_empty_text_has() -> None:
    """Nothing is divided by nothing."""
    assert read_batch([]) is None
    assert ((0,), 0, 0.0) == ((found := read(words(), 0)).tokens, found.width, found.padding_ratio)


def test_rows_of_different_widths_are_no_padded_batch() -> None:
    """Somebody has put two batches together."""
    tokenizer = words()
    mixed = [*tokenizer.encode_batch(["a"]), *tokenizer.encode_batch(["a b c"])]
    with pytest.raises(ValueError, match="rows of 1 to 3 slots"):
        read_batch(mixed, "right")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_what_the_culprit_costs_is_what_leaving_it_out_saves(counts: list[int]) -> None:
    """By tokenizing the others alone."""
    found = read(words(), *counts)
    slots = found.width * len(counts)

    assert found.padding_ratio == pytest.approx((slots - sum(counts)) / slots if slots else 0.0)
    if found.culprit is not None:
        rest = [count for row, count in enumerate(counts) if row != found.culprit]
        saved = found.width * len(rest) - read(words(), *rest).width * len(rest)
        assert found.culprit_ratio == pytest.approx(saved / slots)


def test_the_side_is_read_from_both_kinds_of_tokenizers() -> None:
    """Those of transformers have a word for it."""

    class Fast:
        padding_side = "left"

    assert "left" == padding_side(Fast())
    assert padding_side(object()) is None


def test_rows_get_the_columns_that_rule_and_steps_read(recorder: Recorder, ring: RingFile) -> None:
    """Through the recorder, one stage for the whole call in each row; a text without a row is tokenized, too."""
    scope = {"type": "http", "method": "POST", "headers": []}
    begun = [recorder.begin(scope) for _ in range(2)]
    records = [one[1] for one in begun if one is not None]
    probe = TokenizerProbe(words(), "words.tokenizer")
    probe.encode_batch([text(4), text(16), text(8)], [*records, None])
    for one in begun:
        assert one is not None
        recorder.finish(one, scope, 200, False)
    rows, strings = ring.read(0, 10).rows, ring.strings()

    assert [4, 16] == rows["words.tokenizer/tokens"].tolist()
    assert [16, 16] == rows["words.tokenizer/seq_len"].tolist()
    assert [0.75, 0.0] == rows["words.tokenizer/padding_ratio"].tolist()
    assert [0, 1] == rows["words.tokenizer/widest"].tolist()
    assert ["right"] * 2 == [strings[number] for number in rows["words.tokenizer/padding_side"]]
    assert (rows["words.tokenizer/duration_ns"] > 0).all()


def test_rows_must_be_as_many_as_texts() -> None:
    """Or a text's tokens would be another request's."""
    with pytest.raises(ValueError, match="1 rows for 2 texts"):
        TokenizerProbe(words()).encode_batch(["a", "b"], [None])


def test_what_the_tokenizer_raises_goes_through_and_the_rest_is_the_tokenizers() -> None:
    """It stands in for it."""
    probe = TokenizerProbe(words())
    assert 2 == probe.get_vocab_size()
    with pytest.raises(TypeError):
        probe.encode_batch([3])


def test_a_cache_says_how_much_it_holds_and_whether_it_is_bounded() -> None:
    """Distinct texts fill it, repeated ones are answered by it."""
    tokenizer = words()
    bounded = functools.lru_cache(10)(lambda one: tokenizer.encode(one).ids)
    endless = functools.cache(lambda one: tokenizer.encode(one).ids)
    assert CacheReading(0, 10, None) == read_cache(bounded)
    for number in range(40):
        bounded(f"text {number}")
        endless(f"text {number % 20}")
    assert CacheReading(10, 10, 0.0) == read_cache(bounded)
    assert CacheReading(20, None, 0.5) == read_cache(endless)


def test_loads_at_one_time_know_of_each_other() -> None:
    """Three behind one lock, then one alone, then one that fails."""
    loads, together, behind = Loads(), threading.Barrier(3), threading.Lock()

    def load() -> None:
        with loads.timed():
            together.wait(20)
            with behind:
                Tokenizer.from_str(words().to_str())

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    with loads.timed():
        words()
    with pytest.raises(Exception, match="expected"), loads.timed():
        Tokenizer.from_str("no tokenizer")
    assert [2, 2, 2, 0, 0] == [one.beside for one in loads.ended]
    assert [False] * 4 + [True] == [one.failed for one in loads.ended]
    assert all(one.seconds is not None and one.seconds > 0 for one in loads.ended)


def test_the_last_loads_are_kept() -> None:
    """Memory is bounded."""
    loads = Loads()
    for _ in range(100):
        with loads.timed():
            pass
    assert Loads.KEPT == len(loads.ended)
