from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest

from exporters.exporter import Exporter
from exporters.settings import ExporterSettings
from probes import FlightRecorder, Recorder, current, stage

REQUESTS = 200_000
LOOK_EVERY = 5_000
WARM = 60_000
WARM_SECONDS = 5.0

Series = tuple[object, ...]


class Broken(Exception):  # noqa: N818
    """What the app raises, each time as a class of its own."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer through two stages, with every value that a client can choose in the row."""
    number = scope["number"]
    await receive()
    with stage("sentiment.tokenizer", tokens=number % 500), stage("model.forward", device_type=f"device {number}"):
        record = current()
        assert record is not None
        record.set(input_length=number % 1024, confidence=0.5, label=f"label {number}", model_version=f"v{number}")
        record.set(route=f"/orders/{number}", reason=f"reason {number}", sku=f"sku {number}")
    if number % 100 == 0:
        raise type(f"Error{number}", (Broken,), {})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def receive() -> dict[str, Any]:
    """Give an empty body."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(_message: MutableMapping[str, Any]) -> None:
    """Take an answer and forget it."""


async def ask(flight: FlightRecorder, number: int) -> None:
    """Make one request in which everything is new."""
    headers = [
        (b"x-session-id", b"session-%016d" % number),
        (b"x-client-release", b"1.0.%d" % number),
        (b"user-agent", b"browser %d" % number),
        (b"x-device-type", b"toaster %d" % number),
        (b"traceparent", b"00-%032x-%016x-01" % (number + 1, number + 1)),
    ]
    scope = {"type": "http", "method": f"M{number}", "path": f"/{number}", "headers": headers, "number": number}
    with contextlib.suppress(Broken):
        await flight(scope, receive, send)


def files(*folders: Path) -> int:
    """Return how many files the folders hold, those of the archive's folder not counted: it is bounded in bytes."""
    return sum(path.parent.name != "archive" for folder in folders for path in folder.rglob("*"))


@pytest.fixture
def nobody() -> Iterator[str]:
    """Return the address of a collector that is bound and never answers a connection."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_200000_requests_add_no_memory_no_series_and_no_file(tmp_path: Path, nobody: str) -> None:
    """Everything that clients choose is new in each request, the collector is down, and nothing grows with them."""
    settings = ExporterSettings(
        ring_dir=tmp_path / "rings",
        state_dir=tmp_path / "state",
        otlp_endpoint=nobody,
        otlp_queue_spans=5_000,
        archive_rows=8192,
        archive_bytes=2 << 20,
    )
    exporter = Exporter(settings)
    exporter.start()
    recorder = Recorder.open(exporter.ring_dir, "growth")
    flight = FlightRecorder(app, recorder)
    process = psutil.Process(os.getpid())
    seen: list[tuple[int, int, int]] = []
    # One set for all looks: a set for each, kept to the end, would be the growth that is looked for here.
    known: set[Series] = set()
    added: set[Series] = set()

    async def main() -> None:
        nonlocal known, added
        for number in range(REQUESTS):
            await ask(flight, number)
            if number + 1 == WARM:
                # Status pages, segments and shares of CPU time come with the seconds, not with the requests.
                await asyncio.sleep(WARM_SECONDS)
            if (number + 1) % LOOK_EVERY == 0:
                series: set[Series] = {
                    (sample.name, *sorted(sample.labels.items()))
                    for family in exporter.collect()
                    for sample in family.samples
                }
                # A gauge may be absent at one look, so all that was there until then is what nothing may be added to.
                if number < WARM:
                    known |= series
                else:
                    added |= series - known
                held = process.memory_info().rss
                seen.append((held, files(exporter.ring_dir, settings.state_dir), process.num_fds()))

    try:
        asyncio.run(main())
        counted = {
            sample.name: sample.value for family in exporter.collect() for sample in family.samples if not sample.labels
        }
    finally:
        recorder.close()
        exporter.stop()
    memory, files_seen, descriptors = zip(*seen[WARM // LOOK_EVERY :], strict=True)

    assert REQUESTS == counted["telemetry_rows_read_total"]
    # 140,000 requests that kept 100 bytes each would be 14 MB; the allocator's own noise is below 6.
    # Medians, since a segment that is being packed holds 12 MB for a moment.
    quarter = len(memory) // 4
    assert median(memory[-quarter:]) - median(memory[:quarter]) < 8_000_000
    assert set() == added
    # A file that is being replaced has a second one beside it.
    assert max(files_seen) <= min(files_seen) + 1
    # All 200,000 rows would take 6.6 MB; a segment that has just been sealed may still be above the bound of 2 MiB.
    assert sum(path.stat().st_size for path in settings.state_dir.glob("archive/*")) < 4 << 20
    assert max(descriptors) <= min(descriptors) + 4
