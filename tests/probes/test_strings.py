from __future__ import annotations

import mmap

from hypothesis import given
from hypothesis import strategies as st

from probes.layout import STRING_BYTES
from probes.strings import FIELD_BUDGET, OTHER, Field, StringTable, encode_text


def table(entries: int = 512) -> tuple[StringTable, list[str]]:
    """Return a table in memory and what it counted."""
    counted: list[str] = []
    return StringTable(mmap.mmap(-1, entries * STRING_BYTES), 0, counted.append, entries), counted


@given(st.text(max_size=100))
def test_a_text_is_cut_between_characters_and_never_fails(text: str) -> None:
    """Any text, lone surrogates included, becomes valid UTF-8 of at most 63 bytes."""
    data = encode_text(text)

    assert len(data) <= STRING_BYTES - 1
    assert data.decode() == data.decode("utf-8", "strict")


def test_the_same_text_has_one_id_and_the_empty_one_is_absent() -> None:
    """Ids are given once, by whichever column comes first."""
    strings, _ = table()

    assert strings.add("positive") == Field(strings)["positive"]
    assert strings.add("") == 0


def test_a_full_table_answers_other_and_counts() -> None:
    """The 513th text is stored as "(other)"."""
    strings, counted = table(8)
    ids = [strings.add(f"text {number}") for number in range(10)]

    assert [strings.other] * 4 == ids[-4:]
    assert ["string_table_full"] * 4 == counted
    assert strings.add(OTHER) == strings.other


def test_one_column_cannot_fill_the_table_for_the_others() -> None:
    """An id used as a label spends its own budget: the next column's texts are still stored."""
    strings, counted = table()
    greedy, modest = Field(strings), Field(strings)
    ids = [greedy[f"user {number}"] for number in range(FIELD_BUDGET + 5)]

    assert [strings.other] * 5 == ids[-5:]
    assert ["string_budget"] * 5 == counted
    assert modest["negative"] not in (0, strings.other)


def test_long_texts_are_not_kept_in_memory() -> None:
    """A column remembers what the table stores, not the megabytes that were given."""
    strings, _ = table()
    field = Field(strings)
    first, again = field["x" * 1_000_000], field["x" * 2_000_000]

    assert first == again
    assert max(len(text) for text in field) < STRING_BYTES
