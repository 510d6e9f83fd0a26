"""A request is posted within limits, whatever the receiver does, and no secret comes back in what is said."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from runbooks.notify.links import shown_url
from runbooks.notify.outcome import Request
from runbooks.notify.posting import post
from tests.runbooks.notify.conftest import Answer, Receiver


def test_a_request_arrives_as_it_was_made(receiver: Receiver) -> None:
    """Method, path with its secret, type and body."""
    outcome = post(Request(f"{receiver.url}/services/secret?x=1", '{"a": "ä"}'.encode()))

    assert "sent" == outcome.state
    (request,) = receiver.requests
    assert ("POST", "/services/secret?x=1", {"a": "ä"}) == (request["method"], request["path"], receiver.bodies()[0])
    assert "application/json; charset=utf-8" == request["headers"]["Content-Type"]


def test_a_redirection_is_not_followed(receiver: Receiver) -> None:
    """The address is a secret, and so is the message."""
    receiver.answers = [Answer(302, b"", (("Location", f"{receiver.url}/elsewhere"),))]

    assert "refused" == post(Request(f"{receiver.url}/secret", b"{}")).state
    assert 1 == len(receiver.requests)


def test_a_receiver_that_is_down_or_slow_is_asked_again_later(receiver: Receiver) -> None:
    """And what is said names its host alone."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    down = post(Request(f"http://127.0.0.1:{port}/secret", b"{}"))
    receiver.answers = [Answer(seconds=1.0)]
    slow = post(Request(f"{receiver.url}/secret", b"{}"), seconds=0.2)

    assert ("retry", f"http://127.0.0.1:{port}/... cannot be reached (ConnectError)") == (down.state, down.detail)
    assert ("retry", f"{receiver.url}/... did not answer within 0.2 s") == (slow.state, slow.detail)


def test_a_receiver_that_drips_is_cut_off() -> None:
    """Each byte comes in time, the whole answer never would."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not done.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    outcome = post(Request(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}"), seconds=0.4)
    seconds = time.monotonic() - began
    done.set()
    thread.join()
    listener.close()

    assert "retry" == outcome.state
    assert seconds < 5


def test_a_flood_of_an_answer_is_not_read_to_its_end(receiver: Receiver) -> None:
    """16 kB are enough of any answer."""
    receiver.answers = [Answer(400, b"x" * 5_000_000)]
    outcome = post(Request(receiver.url, b"{}"))

    assert ("refused", "HTTP 400: " + "x" * 120) == (outcome.state, outcome.detail)


@pytest.mark.parametrize("url", ["ftp://host/secret", "http://", "not an address"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """For good: no further try would help."""
    outcome = post(Request(url, b"{}"))

    assert "refused" == outcome.state
    assert "secret" not in outcome.detail


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/secret", "http://127.0.0.1:abc/secret", "http://[bad/secret"])
def test_an_address_that_cannot_be_read_is_an_outcome(url: str) -> None:
    """And no exception: whoever posts is promised one."""
    outcome = post(Request(url, b"{}"), seconds=1)

    assert outcome.state in {"refused", "retry"}
    assert "secret" not in outcome.detail
    assert "an address that cannot be read" == shown_url(url)
