from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes import Recorder
from probes.folder import session_hash
from probes.reader import RingFile
from probes.record import FLAG_SESSION_GENERATED

HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"traceparent", b"x-session-id", b"x-device-type", b"x-client-release", b"user-agent", b"x"])
        | st.just(b"baggage"),
        st.binary(max_size=80) | st.binary(max_size=40).map(b"a=1,session.id=".__add__),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HEADERS, st.text(max_size=10), st.tuples(st.integers(100, 599), st.booleans()))
def test_whatever_the_headers_a_request_is_begun_and_written(
    recorder: Recorder, ring: RingFile, headers: list[tuple[bytes, bytes]], method: str, end: tuple[int, bool]
) -> None:
    """No bytes of a client make a record fail, and nothing about it is refused."""
    scope: dict[str, Any] = {"method": method, "headers": headers}
    intake = recorder.start()
    before = ring.head()
    record = intake.begin(scope)
    intake.finish(record, scope, *end)
    row = ring.read(before).rows[0]

    assert (before + 1, end[0]) == (ring.head(), row["http_status"])
    assert 16 <= len(row["session"]) <= 32
    assert row["trace_hi"] or row["trace_lo"]
    assert recorder.status()["loss"] == {}
    assert 0 == len(ring.open_slots())


SESSION, OTHER = b"session-0123456789", b"session-9876543210"


@pytest.mark.parametrize(
    ("headers", "session", "hashed"),
    [
        ([(b"baggage", b"session.id=" + SESSION)], SESSION, SESSION),
        ([(b"baggage", b"user=1 , session.id = session-%30123456789;p=1")], SESSION, SESSION),
        ([(b"baggage", b"session.id=" + OTHER), (b"x-session-id", SESSION)], SESSION, SESSION),
        ([(b"x-session-id", b"no id"), (b"baggage", b"session.id=" + OTHER)], None, b"no id"),
        ([(b"baggage", b"session.id=no%20id")], None, b"no id"),
        ([(b"baggage", b"session.id=")], None, None),
        ([(b"baggage", b"my-session.id=" + SESSION)], None, None),
        ([(b"baggage", b"a=" + b"b" * 8190 + b",session.id=" + SESSION)], None, None),
    ],
)
def test_the_session_comes_by_baggage_when_no_header_has_one(
    recorder: Recorder, ring: RingFile, headers: list[tuple[bytes, bytes]], session: bytes | None, hashed: bytes | None
) -> None:
    """Whichever core runs; an id that is none stays findable by its hash, as one in a header does."""
    scope: dict[str, Any] = {"method": "GET", "headers": headers}
    intake = recorder.start()
    for _ in range(2):  # the second time from what is remembered
        intake.finish(intake.begin(scope), scope, 200, False)
    for row in ring.read().rows:
        trace = f"{row['trace_hi']:016x}{row['trace_lo']:016x}".encode()
        assert (session or trace, session is None) == (row["session"], bool(row["flags"] & FLAG_SESSION_GENERATED))
        assert row["session_hash"] == (row["trace_lo"] if hashed is None else session_hash(intake.ring.key, hashed))


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (None, "(unmatched)"),
        (object(), "(unmatched)"),
        (type("Route", (), {"path": "/a/{b}"})(), "/a/{b}"),
        (type("Route", (), {"path": "/a/{b:path}", "path_format": "/a/{b}"})(), "/a/{b}"),
    ],
)
def test_the_route_is_the_template_that_the_router_left(
    recorder: Recorder, ring: RingFile, route: object, expected: str
) -> None:
    """Never the path, which may hold ids and is without bound."""
    scope: dict[str, Any] = {"method": "GET", "headers": [], "path": "/a/secret", "route": route}
    intake = recorder.start()
    intake.finish(intake.begin(scope), scope, 200, False)

    assert expected == ring.strings()[ring.read().rows[0]["route"]]
    assert "/a/secret" not in ring.strings()


class BadRoute:
    """What a router of its own kind may leave."""

    @property
    def path(self) -> str:
        """Fail."""
        raise RuntimeError("by hand")


@pytest.mark.parametrize(
    "route", [type("Route", (), {"path_format": bad})() for bad in (b"/x", 7, ["/x"], object())] + [BadRoute()]
)
def test_a_route_that_is_no_text_costs_the_route_alone(recorder: Recorder, ring: RingFile, route: object) -> None:
    """The row is written without it, the loss is counted, and the slot is free again."""
    scope: dict[str, Any] = {"method": "GET", "headers": [], "route": route}
    intake = recorder.start()
    free = len(intake.writer._free)
    intake.finish(intake.begin(scope), scope, 200, False)

    assert ("(unmatched)", 0) == (
        ring.strings()[ring.read().rows[0]["route"]],
        ring.read().rows[0]["outcome"],
    )
    assert 1 == recorder.status()["probe_failures"]["route"]
    assert free == len(intake.writer._free)


def test_an_end_that_cannot_be_written_gives_its_slot_back(recorder: Recorder, ring: RingFile) -> None:
    """A status that is none costs the row, which is counted; a thousand of them do not fill the slots."""
    scope: dict[str, Any] = {"method": "GET", "headers": []}
    intake = recorder.start()
    free = len(intake.writer._free)
    for _ in range(free + 1):
        recorder.finish((intake, intake.begin(scope)), scope, "200", False)  # type: ignore[arg-type]

    assert (free, 0, 0) == (len(intake.writer._free), len(ring.open_slots()), intake.writer.open_overflow)
    assert {"commit": free + 1} == recorder.status()["loss"]
