from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from tests.foreign.conftest import Watched

# Of tests/foreign/streaming_app.py.
PAUSE_SECONDS = 0.05


def test_bodies_in_pieces_both_ways_are_counted_and_not_kept_back(watched: Watched) -> None:
    """A piece is answered while the next is still to be sent, and the row has the bytes of both ways."""
    head = b"POST /upper HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with watched.serve("uvicorn", "streaming_app:app", "--fd", "{fd}") as (client, _):
        with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=30) as wire:
            wire.sendall(head + b"6\r\nalpha \r\n")
            first = until(wire, b"ALPHA ")
            wire.sendall(b"5\r\nbeta \r\n0\r\n\r\n")
            until(wire, b"BETA ")
        table = watched.rows(1)

    assert first.startswith(b"HTTP/1.1 200")
    assert [11] == table["network.receive/bytes"].tolist()
    assert [11] == table["network.send/bytes"].tolist()
    assert ["/upper"] == list(table["route"])
    assert ["ok"] == list(table.outcomes)


def until(wire: socket.socket, end: bytes) -> bytes:
    """Read until the bytes are there."""
    came = b""
    while end not in came:
        piece = wire.recv(4096)
        assert piece, came
        came += piece
    return came


def test_time_to_first_byte_is_kept_apart_from_the_total(watched: Watched) -> None:
    """Head, first piece of the body and last byte of a slow stream are three times of the row."""
    with watched.serve("uvicorn", "streaming_app:app", "--fd", "{fd}") as (client, _):
        client.get("/tokens/0")  # the first request of a process loads what the framework put off
        answer = client.get("/tokens/6").content
        table = watched.rows(2)

    started, sending = table.stage("network.send")
    total = table.numbers("duration_ns")[1] / 1e9
    first_piece = table.numbers("network.send/first_body_ns")[1] / 1e9
    assert 6 == answer.count(b"token-")
    # The server sends the head before the first token is made.
    assert 0 <= started[1] < PAUSE_SECONDS
    assert PAUSE_SECONDS * 0.9 <= first_piece < total - 4 * PAUSE_SECONDS
    assert total >= 6 * PAUSE_SECONDS * 0.9
    assert abs(started[1] + sending[1] - total) < 1e-6


def test_a_client_that_leaves_in_the_middle_of_a_stream_is_told(watched: Watched) -> None:
    """The row of a stream that nobody reads to its end says disconnected."""
    with watched.serve("uvicorn", "streaming_app:app", "--fd", "{fd}") as (client, _):
        with client.stream("GET", "/tokens/100") as stream:
            next(stream.iter_raw())
        client.close()
        table = watched.rows(1)

    assert ["disconnected"] == list(table.outcomes)
    assert httpx.codes.OK == table["http_status"][0]
