"""Panels have one key and one id each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboards.catalogue import BOARDS
from dashboards.spec import Board, Panel, Section, by_key

PANEL = Panel("a", 1, "A", "stat", "short", "Says a.", "None.", ())


def test_every_board_and_panel_is_found_by_its_key() -> None:
    """The seven boards hold no key and no id twice."""
    assert 7 == len(BOARDS)
    assert sum(len(board.panels) for board in BOARDS) == len(by_key(BOARDS))


@pytest.mark.parametrize(
    ("other", "said"),
    [(replace(PANEL, id=2), "bear the key one/a"), (replace(PANEL, key="b"), "bear the id 1")],
)
def test_a_key_or_an_id_that_is_given_twice_is_refused(other: Panel, said: str) -> None:
    """Alerts hold both, so that neither may mean two panels."""
    board = Board("one", "One", "One.", (Section("S", (PANEL, other)),))

    with pytest.raises(ValueError, match=said):
        by_key((board,))
