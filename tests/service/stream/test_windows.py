"""Windows add up, keep their bytes, and tell how far two distributions are apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stream.features import features_of
from service.stream.windows import SHIFTS, Damaged, Window, shift_between

TEXTS = st.lists(st.text(min_size=1, max_size=512), min_size=1, max_size=12)


def counted(texts: list[str]) -> Window:
    """Return a window of these utterances."""
    window = Window(7)
    for text in texts:
        window.add(features_of(text), "app")
    return window


@given(TEXTS, TEXTS)
def test_parts_add_up_to_the_whole(one: list[str], other: list[str]) -> None:
    """In whatever batches the messages came; each class of a feature holds each message once."""
    whole = counted(one + other)

    assert whole.sums == counted(one).plus(counted(other)).sums
    assert {len(one + other)} == {sum(whole.sums[place]) for place in SHIFTS.values()}
    assert sum(map(len, one + other)) / len(one + other) == whole.mean_length


@given(TEXTS, st.integers(0, 2**32 - 1), st.integers(0, 2**63))
def test_bytes_are_read_back(texts: list[str], revision: int, completed: int) -> None:
    """As they were."""
    window = counted(texts)
    window.revision, window.completed_ns = revision, completed

    assert window == Window.unpack(7, window.pack())


@pytest.mark.parametrize("bad", [b"", b"\0" * 10, Window(1).pack()[:-1], b"\xff\xff" + Window(1).pack()[2:]])
def test_other_bytes_are_refused(bad: bytes) -> None:
    """A short one, a long one, one of another format."""
    with pytest.raises(Damaged):
        Window.unpack(1, bad)


def test_quality_personal_data_and_full_width_letters_are_counted() -> None:
    """By what serving calls them."""
    window = counted(["call 13812345678 please", "ＡＢＣ ok", "���", "fine"])
    told = window.to_json()

    assert (1, 1) == (told["personal"], told["wide"])
    assert {"replacement": 1} == {word: count for word, count in told["low_quality"].items() if count}  # type: ignore[attr-defined]


def test_distances_are_those_of_the_definitions() -> None:
    """Kolmogorov-Smirnov where classes have an order, total variation where not; nothing to compare is no distance."""
    assert 0.0 == shift_between([5, 5], [50, 50], ordered=True)
    assert 1.0 == shift_between([1, 0, 0], [0, 0, 9], ordered=True)
    # moved by one class: the functions differ by what lies there, the classes by twice that over two
    assert 0.5 == shift_between([2, 2, 0], [0, 2, 2], ordered=True)
    assert 0.5 == shift_between([2, 2, 0], [0, 2, 2], ordered=False)
    assert 0.25 == shift_between([3, 1], [1, 1], ordered=False)
    assert shift_between([0, 0], [1, 1], ordered=True) is None
