"""A clean-up is not broken off by a second signal."""

from __future__ import annotations

import os
import signal
import threading

from inferdeck.stack.shield import uninterrupted


def test_signals_are_ignored_inside_and_back_afterwards() -> None:
    """The handlers of before are there again, even after an error."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
        assert [] == heard

        os.kill(os.getpid(), signal.SIGTERM)
        assert [signal.SIGTERM] == heard
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_it_does_nothing() -> None:
    """Only the main thread may set handlers."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with uninterrupted():
                pass
        except BaseException as error:  # noqa: BLE001  # handed to the test
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [] == errors
