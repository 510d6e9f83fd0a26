"""Calls to a Triton: answered, timed, bounded, and every way to break them told apart."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from inferdeck.stack.ports import free_ports
from service.triton.transport import Call, TritonError, TritonHttp, reason_of

IDS = np.array([[5, 6, 7]], dtype=np.int64)
MASK = np.ones((1, 3), dtype=np.int64)


def ask(port: int, seconds: float = 5.0, **told: Any) -> Any:
    """Ask once."""
    client = TritonHttp("127.0.0.1", port, "sentiment", 1)
    try:
        return client.infer(IDS, MASK, version="2", seconds=seconds, **told)
    finally:
        client.close()


def reason(port: int, seconds: float = 5.0) -> tuple[str, int]:
    """Ask once in vain and return why."""
    with pytest.raises(TritonError) as caught:
        ask(port, seconds)
    return caught.value.reason, caught.value.status


def test_an_answer_is_the_logits_and_the_time_is_told_apart(fake: Any) -> None:
    """Both tensors go out in binary, the version is in the path, headers go along, and each part has its time."""
    call = Call()
    logits = ask(fake.port, headers={"traceparent": "00-1-2-01"}, call=call)

    assert np.array_equal(fake.logits, logits)
    assert ["/v2/models/sentiment/versions/2/infer"] == fake.paths
    assert "00-1-2-01" == fake.headers[0]["traceparent"]
    assert fake.bodies[0].endswith(IDS.tobytes() + MASK.tobytes())
    assert call.serialize_ns > 0
    assert call.wait_ns > 0
    assert call.deserialize_ns > 0


@pytest.mark.parametrize(("how", "expected"), [("garbage", "wrong_answer"), ("half", "broken"), ("close", "broken")])
def test_what_is_no_answer_is_said_to_be_none(fake: Any, how: str, expected: str) -> None:
    """Bytes that mean nothing, half an answer, a connection that is cut."""
    fake.how = how

    assert (expected, 500) == reason(fake.port)


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (500, "Stub process 'sentiment_0' is not healthy.", "stub_dead"),
        (503, "Request for unknown model: 'sentiment' version 2 is not at ready state", "unloaded"),
        (404, "Request for unknown model: 'sentiment' is not found", "unloaded"),
        (500, "INVALID_ARGUMENT: indices element out of data bounds", "error"),
    ],
)
def test_a_refusal_says_why(fake: Any, status: int, message: str, expected: str) -> None:
    """By its words, since a dead stub and a bad input have the same status."""
    fake.how, fake.status, fake.message = "error", status, message

    assert (expected, status) == reason(fake.port)
    assert expected == reason_of(status, message)


def test_nothing_listening_a_silent_socket_and_a_late_answer_are_three_things(fake: Any, silent_port: int) -> None:
    """Refused at once; timed out for the other two."""
    (nobody,) = free_ports(1)
    fake.how = "late"

    assert "refused" == reason(nobody)[0]
    assert "timeout" == reason(silent_port, 0.2)[0]
    assert "timeout" == reason(fake.port, 0.2)[0]


def test_a_kept_connection_that_was_closed_meanwhile_is_opened_anew(fake: Any) -> None:
    """The server may have been started again between two calls."""
    client = TritonHttp("127.0.0.1", fake.port, "sentiment", 1)
    client.infer(IDS, MASK, version="2", seconds=5.0)
    (kept,) = [client._idle.get()]  # the one connection there is
    kept.sock.shutdown(2)
    client._idle.put(kept)

    assert np.array_equal(fake.logits, client.infer(IDS, MASK, version="2", seconds=5.0))
    client.close()


def test_who_finds_no_connection_is_told_so_in_time(fake: Any) -> None:
    """One connection, two callers, and the first is slow."""
    fake.how = "late"
    client = TritonHttp("127.0.0.1", fake.port, "sentiment", 1)
    first = threading.Thread(target=lambda: client.infer(IDS, MASK, version="2", seconds=5.0))
    first.start()
    while not fake.paths:
        time.sleep(0.01)

    call = Call()
    with pytest.raises(TritonError) as caught:
        client.infer(IDS, MASK, version="2", seconds=0.1, call=call)
    first.join()

    assert "no_connection" == caught.value.reason
    assert call.pool_wait_ns >= 90_000_000
    client.close()
