"""From an ASGI scope to a record with its open slot, and back to a committed row.

Bounded   1,024 session ids, releases, user agents and baggage headers are remembered per worker to spare their
          hashing and parsing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from random import getrandbits
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from probes.core import CORE
from probes.folder import session_hash
from probes.incoming import (
    DEVICE_TYPES,
    METHODS,
    agent_family,
    baggage_session,
    client_release,
    parse_traceparent,
    valid_session,
)
from probes.plan import FIXED_INDEX
from probes.record import FLAG_SAMPLED, FLAG_SESSION_GENERATED, Record
from probes.ringfile import OwnedRing
from probes.strings import OTHER, Field
from probes.surrounding import FLAG_PARENT_INSIDE, Span, surrounding_span
from probes.writer import RingWriter

__all__ = ["Intake"]

M64: Final = 2**64 - 1
CACHE: Final = 1024
WANTED: Final = frozenset(
    {b"traceparent", b"x-session-id", b"user-agent", b"x-client-release", b"x-device-type", b"baggage"}
)
ROUTE_UNMATCHED: Final = "(unmatched)"

IDS: Final = slice(FIXED_INDEX["trace_hi"], FIXED_INDEX["agent_family"] + 1)
I_DURATION: Final = FIXED_INDEX["duration_ns"]
I_STATUS: Final = FIXED_INDEX["http_status"]
I_OUTCOME: Final = FIXED_INDEX["outcome"]
I_FLAGS: Final = FIXED_INDEX["flags"]
I_ROUTE: Final = FIXED_INDEX["route"]
I_ERROR: Final = FIXED_INDEX["error_type"]


class _Cache(dict[bytes, Any]):
    """Remembers what a header value means; emptied when full, so that clients cannot make it grow."""

    def __init__(self, make: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, raw: bytes) -> Any:
        if len(self) >= CACHE:
            self.clear()
        value = self._make(raw)
        if len(raw) <= 512:  # 1,024 values of any length would not be bounded memory
            self[raw] = value
        return value


def _carried(sessions: _Cache, raw: bytes) -> tuple[int, bytes] | None:
    """Return hash and id of the session in a baggage header; b"" for one that is no valid id, None for none."""
    session = baggage_session(raw)
    if not session:
        return None
    hashed, valid = sessions[session]
    return hashed, session if valid else b""


class _PlainIntake:
    """Begins and finishes records where no compiled core does."""

    ring: OwnedRing
    writer: RingWriter
    _wall_ns: int
    _methods: dict[str, int]
    _method_other: int
    _devices: dict[bytes, int]
    _routes: Field
    _errors: Field
    _agents: _Cache
    _releases: _Cache
    _sessions: _Cache
    _baggage: _Cache
    _span_here: Callable[[], Span | None] | None

    def begin(self, scope: MutableMapping[str, Any]) -> Record:
        """Return the record of a request that starts now.

        Args:
            scope: The ASGI scope of an HTTP request.

        Raises:
            Exception: Of any class, if the scope is not what ASGI says; the caller serves the request unrecorded.
        """
        started_ns = perf_counter_ns()
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in WANTED and name not in found:  # of a repeated one, the first counts
                found[name] = value
        # Not uuid4: it costs ten times as much as these three draws (1.7 us against 0.15).
        trace_hi, trace_lo, span = getrandbits(64), getrandbits(64), getrandbits(64)
        parent = agent = release = device = 0
        # Without a session of its own a request is found by its trace id, which spares a keyed hash (0.8 us).
        session, flags = b"", FLAG_SESSION_GENERATED
        raw = None
        if found:
            get = found.get
            raw = get(b"user-agent")
            agent = self._agents[raw] if raw else 0
            raw = get(b"x-client-release")
            release = self._releases[raw] if raw else 0
            raw = get(b"x-device-type")
            device = self._devices.get(raw, 0) if raw else 0
            raw = get(b"traceparent")
            upstream = parse_traceparent(raw) if raw else None
            if upstream is not None:
                trace, parent, sampled = upstream
                trace_hi, trace_lo = trace >> 64, trace & M64
                flags |= FLAG_SAMPLED if sampled else 0
            raw = get(b"x-session-id")
        if self._span_here is not None and (here := self._span_here()) is not None:
            # It has the caller's trace if there was one, and lies between the caller and us.
            trace, parent, sampled = here
            trace_hi, trace_lo = trace >> 64, trace & M64
            flags = FLAG_SESSION_GENERATED | FLAG_PARENT_INSIDE | (FLAG_SAMPLED if sampled else 0)
        hashed = trace_lo
        if raw is not None:
            # Remembered because sessions come back.
            hashed, valid = self._sessions[raw]
            if valid:
                session = raw
                flags &= ~FLAG_SESSION_GENERATED
        elif b"baggage" in found and (carried := self._baggage[found[b"baggage"]]):
            hashed, session = carried
            flags &= ~FLAG_SESSION_GENERATED if session else -1
        writer = self.writer
        method = self._methods.get(scope["method"], self._method_other)
        start = started_ns + self._wall_ns
        ids = (trace_hi, trace_lo, span, parent, start, hashed, session, method, release, device, agent)
        row = writer.plan.template.copy()
        row[IDS] = ids  # one slice instead of eleven stores
        row[I_FLAGS] = flags
        return Record(writer, row, started_ns, writer.begin(ids))

    def finish(self, record: Record, scope: MutableMapping[str, Any], status: int, disconnected: bool) -> None:
        """Commit the row of a request that has ended.

        Args:
            record: What `begin` returned.
            scope: The request's scope, in which the router has left its route by now.
            status: HTTP status that was sent, 500 when the app failed before it sent one, 0 when none was sent.
            disconnected: Whether the client went away before the answer was complete.
        """
        row = record.row
        slot, record.slot = record.slot, self.writer.scratch  # a thread that goes on must not mark another's slot
        try:
            if not row[I_DURATION]:  # the answer was not completed
                row[I_DURATION] = perf_counter_ns() - record.started_ns
            row[I_STATUS] = status
            if not row[I_ROUTE]:
                try:
                    route = scope.get("route")
                    path = getattr(route, "path_format", None) or getattr(route, "path", None) or ROUTE_UNMATCHED
                    row[I_ROUTE] = self._routes[path]
                except Exception:  # noqa: BLE001  somebody else's router: what it leaves may be anything
                    self.writer.count("route")
                    row[I_ROUTE] = self._routes[ROUTE_UNMATCHED]
            if not row[I_OUTCOME]:  # the app has not said it itself
                # Numbers of probes.schema.OUTCOMES.
                row[I_OUTCOME] = 4 if disconnected else 0 if status < 400 else 1 if status < 500 else 2
            self.writer.commit(row, slot)
        except BaseException:
            # A row that cannot be written must not count as in flight for ever, nor keep one of the bounded slots.
            self.writer.release(slot)
            raise

    def fail(self, record: Record, error: BaseException, answered: bool) -> None:
        """Write down that the app raised.

        Args:
            record: The request's record.
            error: What it raised; only its class is kept.
            answered: Whether the client had its whole answer by then, as when a background task fails: the outcome
                stays the answer's.
        """
        if not answered:
            record.row[I_OUTCOME] = 2
        record.row[I_ERROR] = self._errors[type(error).__name__]


if TYPE_CHECKING or CORE is None:
    IntakeBase = _PlainIntake
else:
    CORE.prepare(WANTED=WANTED, parse_traceparent=parse_traceparent)
    IntakeBase = CORE.IntakeCore


class Intake(IntakeBase):
    """Begins and finishes the records of one ring.

    Args:
        ring: The ring that this process writes.
        clock_ns: Wall clock, ns since 1970.
    """

    def __init__(self, ring: OwnedRing, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self.ring = ring
        self.writer = writer = ring.writer
        self._clock_ns = clock_ns
        self._wall_ns = clock_ns() - perf_counter_ns()
        plan = writer.plan
        self._methods = {method: writer.strings.add(method) for method in METHODS}
        self._method_other = writer.strings.add(OTHER)
        self._devices = {value: writer.strings.add(value.decode()) for value in DEVICE_TYPES}
        self._routes = plan.text_field("route")
        self._errors = plan.text_field("error_type")
        releases = plan.text_field("client_release")
        agents = Field(writer.strings)
        self._agents = _Cache(lambda raw: agents[agent_family(raw)])
        self._releases = _Cache(lambda raw: releases[client_release(raw)] if client_release(raw) else 0)
        key = ring.key
        self._sessions = sessions = _Cache(lambda raw: (session_hash(key, raw), valid_session(raw)))
        self._baggage = _Cache(lambda raw: _carried(sessions, raw))
        self._span_here = surrounding_span()

    def anchor(self) -> None:
        """Follow what changes while we run: a wall clock that was set, and tracing that was loaded after the start."""
        wall_ns = self._clock_ns() - perf_counter_ns()
        if abs(wall_ns - self._wall_ns) > 1_000_000:
            self._wall_ns = wall_ns
        # An app may load it as late as in its own start-up.
        self._span_here = self._span_here or surrounding_span()
