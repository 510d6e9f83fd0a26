"""The program kills all of Triton; its twin restarts it as a deploy does."""

from __future__ import annotations

import pytest

from tests.failures._triton import RecordingStack, load


@pytest.mark.parametrize(("hook", "expected"), [("cause", ["kill_triton 9"]), ("twin_cause", ["restart_triton"])])
def test_the_cause_kills_all_of_it_and_the_twin_restarts_it(hook: str, expected: list[str]) -> None:
    """Entering causes; leaving undoes nothing."""
    stack = RecordingStack()

    with getattr(load("triton_down"), hook)(stack):
        assert expected == stack.done

    assert expected == stack.done
