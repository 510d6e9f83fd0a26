from __future__ import annotations

import json
import re
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from exporters.lookup import find_session, find_trace
from exporters.rows import load_rows

if TYPE_CHECKING:
    from tests.hard.conftest import Service

VALID = re.compile(rb"[A-Za-z0-9_-]{16,32}")
# Bytes that may stand in a header (RFC 9110, 5.5); what is no HTTP at all is for tests/service/test_main.py.
ALLOWED = bytes(byte for byte in range(0x20, 0x100) if byte != 0x7F)
values = st.lists(st.sampled_from(ALLOWED), max_size=80).map(lambda raw: bytes(raw).strip(b" "))
sessions = st.one_of(values, st.from_regex(VALID, fullmatch=True), st.just(b"\xe4\xbc\x9a\xe8\xaf\x9d" * 6))
traces = st.one_of(
    values,
    st.from_regex(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True),
    st.from_regex(rb"[0-9A-F]{2}-[0-9a-f]{30,34}-[0-9a-f]{16}-[0-9a-f]{2}(-x)?", fullmatch=True),
)
products = st.one_of(st.text(max_size=40), st.from_regex(r"[A-Z]{2}[0-9]{8}", fullmatch=True), st.integers(), st.none())
few = settings(max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def ask(service: Service, headers: list[tuple[bytes, bytes]], product: object = "AB12345678") -> int:
    """Send a review with these header bytes; returns the status."""
    body = json.dumps({"text": "good", "product_id": product}).encode()
    lines = [b"%s: %s\r\n" % header for header in headers]
    head = b"POST /v1/sentiment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as wire:
        wire.sendall(head + b"".join(lines) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        came = b""
        while piece := wire.recv(65536):
            came += piece
    return int(came.split(b" ", 2)[1])


@few
@given(session=sessions)
@example(session=b"0123456789abcdef")
@example(session=b"0123456789abcdef0123456789abcdef0")
@example(session=b"'; drop table rows; --")
@example(session=b"../../../../etc/passwd")
def test_a_session_is_found_by_whatever_it_called_itself(service: Service, session: bytes) -> None:
    """Valid or not, the request is answered and found by the header as it came; only valid ids are kept as they are."""
    before = len(load_rows(service.ring_dir))

    assert 200 == ask(service, [(b"X-Session-Id", session)])
    service.until(lambda: len(load_rows(service.ring_dir)) > before)
    found = find_session(service.ring_dir, session.decode("utf-8", "surrogateescape"))
    assert len(found) >= 1
    kept = {view.session_id.encode() for view in found}
    assert all(VALID.fullmatch(one) for one in kept)
    assert (kept == {session}) == (VALID.fullmatch(session) is not None)


@few
@given(trace=traces)
@example(trace=b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01")
@example(trace=b"ff-" + b"1" * 32 + b"-" + b"1" * 16 + b"-01")
@example(trace=b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
def test_any_traceparent_ends_in_a_trace_of_its_own_or_the_callers(service: Service, trace: bytes) -> None:
    """A malformed one starts a new trace with an id that is not zero; a good one is gone on with."""
    assert 200 == ask(service, [(b"traceparent", trace)])
    parts = trace.split(b"-")
    good = re.fullmatch(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", trace) and int(parts[1], 16) and int(parts[2], 16)
    table = load_rows(service.ring_dir)

    assert ((table["trace_hi"] != 0) | (table["trace_lo"] != 0)).all()
    assert (table["span_id"] != 0).all()
    if good:
        service.until(lambda: find_trace(service.ring_dir, parts[1].decode()))


@few
@given(product=products)
@example(product="AB12345678\n")
@example(product="\uff21\uff2212345678")
@example(product="ab12345678")
def test_product_ids_are_taken_or_refused_and_never_a_fault(service: Service, product: object) -> None:
    """What the pattern allows is answered, all else is 400."""
    good = isinstance(product, str) and re.fullmatch(r"[A-Z]{2}[0-9]{8}", product)

    assert (200 if good else 400) == ask(service, [], product)


FLOODS = {
    "one name ten thousand times": [(b"x-session-id", b"%016d" % number) for number in range(1500)],
    "names that nobody knows": [(b"x-%d" % number, b"") for number in range(6000)],
    "empty values": [(b"a", b"")] * 10_000,
    "long name": [(b"x" * 50_000, b"1")],
    "cookies": [(b"cookie", b"a=b; " * 200)] * 50,
}


@pytest.mark.parametrize("headers", FLOODS.values(), ids=FLOODS.keys())
def test_floods_of_headers_within_the_bound_are_answered(service: Service, headers: list[tuple[bytes, bytes]]) -> None:
    """Up to 64 KiB of head are taken (probes/bounded_head.py), whatever they hold; the row has the first of a name."""
    assert 200 == ask(service, headers)
    if headers[0][0] == b"x-session-id":
        service.until(lambda: find_session(service.ring_dir, headers[0][1].decode()))


def test_a_head_over_the_bound_is_told_so_and_the_next_client_is_served(service: Service) -> None:
    """431 or a closed connection, nothing kept."""
    before = service.resident_bytes()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as wire:
            try:
                wire.sendall(b"GET / HTTP/1.1\r\n" + b"x-flood: 0123456789\r\n" * 100_000)
                told = wire.recv(4096)
            except ConnectionError:
                told = b""
        assert told == b"" or told.startswith(b"HTTP/1.1 431")

    assert 200 == ask(service, [])
    assert service.resident_bytes() - before < 20_000_000
