from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.chunks import CHUNKING, Chunking, chunking_fingerprint, chunking_for, sentence_ends, spans

ENDS = st.lists(st.booleans(), max_size=3000)


@st.composite
def chunkings(draw: st.DrawFn) -> Chunking:
    """Return any chunking that moves on."""
    size = draw(st.integers(1, 600))
    least = draw(st.integers(1, size))
    return Chunking(size, draw(st.integers(0, least - 1)), (least - 0.5) / size)


def places(text: str) -> list[tuple[int, int]]:
    """Return each character as a token."""
    return [(place, place + 1) for place in range(len(text))]


@given(ENDS, chunkings())
def test_no_token_is_lost_and_none_counts_twice(ends: list[bool], chunking: Chunking) -> None:
    """What windows have new, one behind the other, is the text."""
    found = spans(ends, chunking)
    new = [place for one in found for place in range(one.end - one.new, one.end)]
    assert new == list(range(len(ends)))


@given(ENDS, chunkings())
def test_windows_are_bounded(ends: list[bool], chunking: Chunking) -> None:
    """None is longer than the size; one that another follows is past the earliest cut."""
    found = spans(ends, chunking)
    assert all(0 < one.end - one.start <= chunking.size for one in found)
    assert all(one.end - one.start >= chunking.least for one in found[:-1])
    assert all(one.new > 0 for one in found)


@given(ENDS, chunkings())
def test_the_overlap_is_what_was_asked_for(ends: list[bool], chunking: Chunking) -> None:
    """Each window starts that many tokens before the end of the one before."""
    for before, after in pairwise(spans(ends, chunking)):
        assert chunking.overlap == before.end - after.start


@given(ENDS, chunkings())
def test_a_cut_is_the_last_sentence_end_in_reach(ends: list[bool], chunking: Chunking) -> None:
    """Where none is in reach the window is full."""
    for one in spans(ends, chunking)[:-1]:
        behind = ends[one.end : one.start + chunking.size]
        assert not any(behind)
        if not ends[one.end - 1]:
            assert one.end - one.start == chunking.size


def test_requirement() -> None:
    """Windows of 512, overlap 128, cut past 60% of them."""
    assert (512, 128, 0.6) == (CHUNKING.size, CHUNKING.overlap, CHUNKING.earliest)
    at_307, at_308 = ([place == cut for place in range(1000)] for cut in (306, 307))
    assert 512 == spans(at_307)[0].end
    assert 308 == spans(at_308)[0].end


@pytest.mark.parametrize("text", ["好。" * 400, "很好！真的？" * 100, "good one. " * 130, "so; or so! " * 120])
def test_both_languages_are_cut_at_sentences(text: str) -> None:
    """With sentence ends everywhere no window ends within one."""
    for one in spans(sentence_ends(text, places(text)))[:-1]:
        assert text[one.end - 1] in "。！？；.!?;"


def test_a_number_and_an_address_are_no_ends() -> None:
    """A mark of ASCII ends a sentence before white space or at the end; "3.5" goes on."""
    text = "v3.5 www.x ok. yes!"
    assert ["k.", "s!"] == [
        text[place - 1 : place + 1] for place, end in enumerate(sentence_ends(text, places(text))) if end
    ]


def test_tokens_without_characters_end_nothing() -> None:
    """A special token has no place in the text."""
    assert [False] == sentence_ends("", [(0, 0)])


def test_a_short_text_is_one_window_and_an_empty_one_none() -> None:
    """The usual text costs no thought."""
    assert [(0, 5, 5)] == spans([False] * 5)
    assert [] == spans([])
    assert [(0, 512, 512)] == spans([True] * 512)


@pytest.mark.parametrize("wrong", [(10, 6, 0.5), (10, -1, 0.5), (0, 0, 0.6), (10, 10, 1.0)])
def test_windows_that_would_stand_still_are_refused(wrong: tuple[int, int, float]) -> None:
    """An overlap as long as the shortest window would never end."""
    with pytest.raises(ValueError, match="stands"):
        Chunking(*wrong)


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 16, 511, 512, 8192])
def test_a_smaller_model_has_the_same_shares(tokens: int) -> None:
    """A quarter overlaps; no model gets more than it takes, and none windows above the requirement's."""
    assert min(tokens, 512) == chunking_for(tokens).size
    assert 1400 == sum(one.new for one in spans([False] * 1400, chunking_for(tokens)))


def test_parameters_and_behaviour_are_in_the_fingerprint() -> None:
    """Each of the three changes it."""
    others = {chunking_fingerprint(Chunking(*one)) for one in ((500, 128, 0.6), (512, 64, 0.6), (512, 128, 0.7))}
    assert 4 == len(others | {chunking_fingerprint()})
