from __future__ import annotations

import threading

from probes.heartbeat import Heartbeat


def test_it_beats_until_it_is_stopped() -> None:
    """After stop() no beat comes any more, and the thread has ended."""
    beats: list[int] = []
    enough = threading.Event()

    def beat() -> None:
        beats.append(1)
        if len(beats) >= 3:
            enough.set()

    heartbeat = Heartbeat(0.001, beat)
    heartbeat.start()
    assert enough.wait(10)
    heartbeat.stop()
    count = len(beats)

    assert not heartbeat._thread.is_alive()
    assert count == len(beats)


def test_it_may_be_stopped_by_its_own_beat() -> None:
    """Stopping from within does not wait for itself."""
    done = threading.Event()

    def beat() -> None:
        heartbeat.stop()
        done.set()

    heartbeat = Heartbeat(0.001, beat)
    heartbeat.start()

    assert done.wait(10)
