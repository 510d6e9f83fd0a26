"""The program stops the server and lets it go on at the end; its twin stops it for a second."""

from __future__ import annotations

from tests.failures._triton import RecordingStack, becomes_stopped, load, sleeper


def test_the_server_is_stopped_and_goes_on_afterwards() -> None:
    """A stopped process must not outlive the drill as one; the stubs are left alone."""
    with sleeper() as child:
        stack = RecordingStack(child.pid)
        with load("triton_hung").cause(stack):
            becomes_stopped(child.pid, stopped=True)
        becomes_stopped(child.pid, stopped=False)

        assert ["server"] == stack.done


def test_a_drill_that_is_broken_off_leaves_no_stopped_server() -> None:
    """Whatever goes wrong in between."""
    with sleeper() as child:
        caused = load("triton_hung").cause(RecordingStack(child.pid))
        caused.__enter__()
        becomes_stopped(child.pid, stopped=True)
        error = RuntimeError("broken off")

        assert not caused.__exit__(RuntimeError, error, None)
        becomes_stopped(child.pid, stopped=False)


def test_a_server_that_died_meanwhile_is_no_error() -> None:
    """There is nothing to let go on."""
    with sleeper() as child, load("triton_hung").cause(RecordingStack(child.pid)):
        child.kill()
        child.wait()


def test_the_twin_is_over_before_it_is_looked_at() -> None:
    """A second of silence."""
    with sleeper() as child, load("triton_hung").twin_cause(RecordingStack(child.pid)):
        becomes_stopped(child.pid, stopped=False)
