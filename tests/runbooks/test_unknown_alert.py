"""An alert that is none of the catalogue's is said to be so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runbooks.engine import triage
from runbooks.unknown_alert import unknown_alert

KNOWN = ("EventLoopBlocked", "ServiceDown")


@pytest.mark.parametrize("alert", [None, "", *KNOWN])
def test_of_a_known_alert_or_none_nothing_is_said(alert: str | None) -> None:
    """No sentence."""
    assert "" == unknown_alert(alert, KNOWN)


@pytest.mark.parametrize("alert", ["EventLoopBlockd", "eventloopblocked"])
def test_a_mistyped_alert_is_told_its_close_names(alert: str) -> None:
    """The one that was meant is shown, not all."""
    told = unknown_alert(alert, KNOWN)

    assert f"no alert {alert} (close: EventLoopBlocked)" in told


def test_an_alert_like_no_other_is_told_all_names_and_bounded() -> None:
    """What came from outside is cut, and its control characters are taken out."""
    told = unknown_alert("\x1b[2J" + "x" * 5000, KNOWN)

    assert "(it has: EventLoopBlocked, ServiceDown)" in told
    assert "\x1b" not in told
    assert len(told) < 250


def test_triage_says_so_and_still_goes_by_time(world: Callable[..., Any]) -> None:
    """The verdict is the one of the time; the sentence follows it."""
    here = world(block_seconds=0.2, block_share=0.05)
    found = triage(here.sources(), alert="Nope", at=here.until, clock=lambda: here.until)

    assert "event_loop_blocked" == found["verdict"]["slug"]
    assert "The catalogue has no alert Nope" in found["verdict"]["summary"]
