from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from exporters.rows import load_rows
from probes.settings import RecorderSettings

if TYPE_CHECKING:
    from tests.hard.conftest import Launch, Service

HEAD = b"POST /v1/sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@contextlib.contextmanager
def clients(port: int, count: int, said: bytes) -> Iterator[list[socket.socket]]:
    """Open connections that say something and then nothing more."""
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(count):
            wires.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)))
            wires[-1].sendall(said)
        yield wires


def drip(wires: list[socket.socket]) -> None:
    """Send one more byte on each; those that the service has closed are left."""
    for wire in wires:
        with contextlib.suppress(OSError):
            wire.sendall(b"x")


@pytest.mark.real
def test_clients_that_never_finish_their_head_keep_nobody_waiting_and_are_let_go(launch: Launch) -> None:
    """Heads that grow by a byte now and then end after 10 s (probes/bounded_head.py), however lively they seem."""
    with launch() as service:
        before = service.descriptors()
        with clients(service.port, 600, HEAD + b"X-Slow: ") as wires:
            service.until(lambda: service.descriptors() >= before + 590)
            answers = []
            for _ in range(20):
                answers.append(service.ask().status_code)
                drip(wires)
            until = time.monotonic() + 25
            while service.descriptors() > before + 5 and time.monotonic() < until:
                drip(wires)
                time.sleep(0.2)
            after = service.descriptors()

    assert [200] * 20 == answers
    # What remains are connections of the machine's own, such as those of the last good clients.
    assert after <= before + 5


def test_more_unfinished_bodies_than_open_slots_lose_no_row(launch: Launch) -> None:
    """Requests beyond the table of open slots are answered and get their rows; the overflow is counted."""
    slots = RecorderSettings().open_slots
    with launch(receive_timeout_seconds=4) as service:
        before = service.descriptors()
        with clients(service.port, slots + 100, HEAD + b"Content-Length: 100\r\n\r\n{") as wires:
            service.until(lambda: len(load_rows(service.ring_dir).open) == slots)
            good = [service.ask().status_code for _ in range(10)]
            told = [wire.recv(4096).split(b" ", 2)[1] for wire in wires]
            service.until(lambda: len(load_rows(service.ring_dir)) == slots + 110)
            service.until(lambda: service.descriptors() <= before + 5)
            # The status page is written once a second.
            service.until(lambda: overflow(service) >= 100)
        table = load_rows(service.ring_dir)

    assert [200] * 10 == good
    assert {b"408"} == set(told)
    assert slots + 100 == int((table["http_status"] == 408).sum())
    assert () == table.open


def overflow(service: Service) -> int:
    """Return the requests that found no open slot, as the status page tells them."""
    return sum(status["open_overflow"] for status in load_rows(service.ring_dir).statuses.values())


def test_a_client_that_asks_without_end_and_reads_nothing_costs_little_memory(launch: Launch) -> None:
    """Requests that queue up on a connection are bounded (probes/bounded_head.py); others are served meanwhile."""
    with launch() as service:
        service.ask()
        before = service.resident_bytes()
        with clients(service.port, 10, b"") as wires:
            for wire in wires:
                wire.setblocking(False)
                with contextlib.suppress(OSError):
                    for _ in range(40):
                        wire.send(b"GET /x HTTP/1.1\r\n\r\n" * 10_000)
            answers = [service.ask().status_code for _ in range(10)]
            grown = service.resident_bytes() - before

    assert [200] * 10 == answers
    # Each of the ten may hold one read of the socket (256 KiB) and 64 requests of about 4 KiB.
    assert grown < 10_000_000


def test_a_few_requests_on_a_connection_before_the_first_answer_are_all_answered(launch: Launch) -> None:
    """Pipelining as HTTP/1.1 allows it works."""
    body = b'{"text": "good", "product_id": "AB12345678"}'
    one = HEAD + b"Content-Length: %d\r\n" % len(body)
    with launch() as service, clients(service.port, 1, (one + b"\r\n" + body) * 29) as [wire]:
        wire.sendall(one + b"Connection: close\r\n\r\n" + body)
        came = b""
        while piece := wire.recv(65536):
            came += piece

    assert 30 == came.count(b"HTTP/1.1 200")
