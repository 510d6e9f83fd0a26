"""Panels stand side by side, never over each other, never outside the grid."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.layout import COLUMNS, Place, lay_out
from dashboards.spec import Panel, Section


def panel(number: int, width: int, height: int) -> Panel:
    """Return a panel of a size."""
    return Panel(f"p{number}", number, "P", "stat", "short", "P.", "None.", (), width=width, height=height)


def test_a_panel_that_does_not_fit_starts_a_new_line_below_the_tallest() -> None:
    """10 + 10 + 10 columns are two lines, where Grafana's library would leave the grid."""
    section = Section("S", (panel(1, 10, 4), panel(2, 10, 8), panel(3, 10, 2)))

    [(_, heading, placed)] = lay_out([section])

    assert Place(0, 0, 24, 1) == heading
    assert [Place(0, 1, 10, 4), Place(10, 1, 10, 8), Place(0, 9, 10, 2)] == [place for _, place in placed]


def test_the_next_section_begins_below_the_one_before() -> None:
    """Headings take a row of their own."""
    sections = [Section("A", (panel(1, 24, 5),)), Section("B", (panel(2, 6, 3),))]

    assert [0, 6] == [heading.y for _, heading, _ in lay_out(sections)]


@given(st.lists(st.tuples(st.integers(1, COLUMNS), st.integers(1, 12)), min_size=1, max_size=20))
def test_no_two_panels_share_a_cell_and_none_leaves_the_grid(sizes: list[tuple[int, int]]) -> None:
    """Whatever their sizes are."""
    section = Section("S", tuple(panel(number, *size) for number, size in enumerate(sizes)))

    places = [place for _, _, placed in lay_out([section, section]) for _, place in placed]

    assert all(0 <= place.x and place.x + place.w <= COLUMNS for place in places)
    assert not [
        (a, b)
        for a, b in combinations(places, 2)
        if a.x < b.x + b.w and b.x < a.x + a.w and a.y < b.y + b.h and b.y < a.y + a.h
    ]


def test_a_panel_wider_than_the_grid_is_refused() -> None:
    """It could stand nowhere."""
    with pytest.raises(ValueError, match="25 columns wide"):
        lay_out([Section("S", (panel(1, 25, 1),))])
