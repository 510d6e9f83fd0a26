"""Rows on demand: the real writer, filled by hand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from probes import plan
from probes.folder import session_hash
from probes.intake import Intake
from probes.plan import StageSpec
from probes.record import Record
from probes.ringfile import OwnedRing, open_ring
from probes.settings import Identity, RecorderSettings

SPECS = (
    StageSpec("network.receive", attributes={"bytes": "int"}),
    StageSpec("scheduler.dispatch", attributes={"queue_wait_ns": "int"}),
    StageSpec(
        "sentiment.tokenizer", "scheduler.dispatch", cpu=True, attributes={"padding_ratio": "float", "fast": "bool"}
    ),
    StageSpec("model.forward", "scheduler.dispatch", attributes={"provider": "str"}),
)


class Flight:
    """One worker's ring, written by hand."""

    def __init__(self, owned: OwnedRing, start_unix_ns: int) -> None:
        self.owned = owned
        self.writer = owned.writer
        self.intake = Intake(owned)
        self.clock = start_unix_ns
        self.trace = 0

    @property
    def path(self) -> Path:
        """The ring file."""
        assert self.owned.path is not None
        return self.owned.path

    def begin(self, session: str = "session-0123456789ab", stage: str = "") -> Record:
        """Begin a request that is left at *stage*."""
        self.trace += 1
        headers = [(b"x-session-id", session.encode()), (b"x-client-release", b"7.1.0")]
        record = self.intake.begin({"type": "http", "method": "POST", "headers": headers})
        if stage:
            record.stage(stage).__enter__()
        return record

    def row(
        self,
        *,
        stages: dict[str, tuple[int, int]] | None = None,
        session: str = "session-0123456789ab",
        columns: dict[str, Any] | None = None,
        **values: Any,
    ) -> int:
        """Commit a row; *stages* maps a stage to start and duration in ns, the others are columns by name."""
        plan, strings = self.writer.plan, self.writer.strings
        place = {column.name: index for index, column in enumerate(plan.revisions[-1].columns)}
        record = self.begin(session)
        row = record.row
        known: dict[str, Any] = {
            "trace_hi": 0xABCD,
            "trace_lo": (self.trace << 56) | 0x1234,
            "span_id": (int(self.path.stem[-8:], 16) << 16) + self.trace,
            "start_unix_ns": self.clock,
            "duration_ns": 5_000_000,
            "session_hash": session_hash(self.owned.key, session.encode()),
            "session": session.encode(),
            "http_status": 200,
            "flags": 0,
            "client_release": "",
            "parent_span_id": 0,
            "input_length": 40,
            "tokens": 9,
            "confidence": 0.9,
            "method": "POST",
            "route": "/v1/sentiment",
            "label": "positive",
            "model_version": "v1",
        }
        for name, value in (known | values | (columns or {})).items():
            is_text = plan.revisions[-1].columns[place[name]].kind == "str"
            row[place[name]] = strings.add(value) if is_text and isinstance(value, str) else value
        for stage, (start, duration) in (stages or {}).items():
            row[place[f"{stage}/start_ns"]], row[place[f"{stage}/duration_ns"]] = start, duration
        self.clock += 1_000_000
        return self.writer.commit(row, record.slot)

    def status(self, **values: Any) -> None:
        """Write the status page."""
        self.writer.write_status({"written_unix_ns": time.time_ns(), "ready": True, **values})

    def die(self) -> None:
        """Give the lock up, as a killed process does."""
        self.owned.close()


@pytest.fixture
def ring_dir(tmp_path: Path) -> Path:
    """A private folder for ring files."""
    return tmp_path / "rings"


@pytest.fixture
def nothing_declared() -> Iterator[None]:
    """Put aside which stages this process declared: a service that an earlier test started here has some of these."""
    declared = dict(plan._declared)
    plan._declared.clear()
    yield
    plan._declared.clear()
    plan._declared.update(declared)


@pytest.fixture
def fly(ring_dir: Path, nothing_declared: None) -> Iterator[Callable[..., Flight]]:
    """Make workers' rings in *ring_dir*; `fly(ring_rows=64)` sets sizes."""
    flights: list[Flight] = []

    def make(start_unix_ns: int = 1_700_000_000_000_000_000, service: str = "sentiment", **sizes: int) -> Flight:
        settings = RecorderSettings(**{"ring_rows": 256, "row_bytes": 1024, "open_slots": 16, **sizes})  # type: ignore[arg-type]
        refusals: list[str] = []
        identity = Identity(build="b1", config="c1", model="m1", host="host-1")
        owned = open_ring(ring_dir, service, identity, settings, refusals.append)
        owned.writer.plan._declare_all(SPECS)
        flights.append(Flight(owned, start_unix_ns))
        return flights[-1]

    yield make
    for flight in flights:
        flight.die()


@pytest.fixture
def stop_process() -> Iterator[Callable[[Any], None]]:
    """Remember processes that a test started; what still runs at its end is killed by pid."""
    started: list[Any] = []
    yield started.append
    for process in started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
