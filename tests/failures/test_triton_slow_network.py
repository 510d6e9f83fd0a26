"""The program puts a relay between service and Triton that holds answers back; its twin's holds nothing back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.failures._triton import RecordingStack, load


@contextmanager
def reversing_peer() -> Iterator[str]:
    """Listen as Triton would, for one connection, and send back what comes, reversed; yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo() -> None:
            peer, _ = listening.accept()
            with peer:
                while data := peer.recv(65536):
                    peer.sendall(data[::-1])

        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(10)
        # those of the relay end when both sides have
        for one in threading.enumerate():
            if one.name.endswith(("(_carry)", "(_pass_on)")):
                one.join(10)


def ask(port: int) -> float:
    """Send a question through a relay, hold its answer to what Triton said, and return the seconds it took."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        began = time.monotonic()
        client.sendall(b"question")
        assert b"noitseuq" == client.recv(100)
        took = time.monotonic() - began
        client.shutdown(socket.SHUT_RDWR)
    return took


@pytest.mark.parametrize(("hook", "least"), [("cause", 0.08), ("twin_cause", 0.0)])
def test_the_service_reaches_triton_by_the_relay(hook: str, least: float) -> None:
    """It is rolled out once, with a port behind which Triton answers, late where something is caused."""
    with reversing_peer() as url:
        stack = RecordingStack(url=url)
        with getattr(load("triton_slow_network"), hook)(stack):
            (done,) = stack.done
            verb, port = done.split()
            assert "reach_triton_by" == verb
            assert ask(int(port)) >= least

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=10).close()


@pytest.mark.parametrize("delay", [0.2, 0.0])
def test_the_relay_holds_answers_back_and_passes_all_bytes_on(delay: float) -> None:
    """What comes through is what was sent."""
    with reversing_peer() as url, load("triton_slow_network").relay(url, delay) as port:
        assert ask(port) >= delay
