"""The program kills the processes that run the model until the end; its twin restarts Triton as a deploy does."""

from __future__ import annotations

import threading

from tests.failures._triton import RecordingStack, load, sleeper


def test_a_stub_is_killed_and_the_killer_ends_with_the_drill() -> None:
    """Only stubs, and nobody after the end."""
    with sleeper() as child:
        stack = RecordingStack(child.pid)
        with load("triton_stub_dead").cause(stack):
            assert -9 == child.wait(10)

        assert ["stubs"] == stack.done
    assert "killer" not in {thread.name for thread in threading.enumerate()}


def test_one_that_comes_back_is_killed_again() -> None:
    """Triton starts a new one; a killer that has nobody to kill goes on."""
    program = load("triton_stub_dead")
    program.EVERY_SECONDS = 0.01
    with sleeper() as first, sleeper() as second:
        stack = RecordingStack(first.pid)
        with program.cause(stack):
            assert -9 == first.wait(10)
            stack.pid = second.pid
            assert -9 == second.wait(10)


def test_the_twin_restarts_triton_and_kills_nobody() -> None:
    """Its stubs end in an orderly way."""
    stack = RecordingStack()

    with load("triton_stub_dead").twin_cause(stack):
        assert ["restart_triton"] == stack.done

    assert ["restart_triton"] == stack.done
