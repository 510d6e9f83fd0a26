"""Rows of a made-up service, written by the real recorder and sealed by the real archiver, as fast as both go.

Bounded   rings of the default size, one per worker; the archive by `Limits.keep_bytes`, which no run reaches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from exporters.archive.archiver import Archiver
from exporters.archive.bounds import Limits
from inferdeck.errors import CannotRun
from probes import Recorder, RecorderSettings

__all__ = ["REQUESTS_PER_SESSION", "Written", "session_id", "write_flight"]

REQUESTS_PER_SESSION: Final = 4
WORKERS: Final = 4
# Far less than half a lap of each ring: the archiver is never late, as in a service that it keeps up with.
LOOK_EVERY: Final = 4096
_ROUTE: Final = SimpleNamespace(path="/v1/sentiment")
_RELEASES: Final = tuple(b"7.%d.0" % number for number in range(8))
# Place of the release whose answers may be less sure.
UNSURE: Final = 3
_LABELS: Final = ("negative", "neutral", "positive")


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        rows: Rows in rings and archive together.
        archived: Rows in the archive; the newest are in the rings alone, and some of the archived ones still too.
        archive_bytes: Bytes of the archive.
        segments: Its segments.
    """

    rows: int
    archived: int
    archive_bytes: int
    segments: int


def session_id(number: int) -> str:
    """Return the id of a session; sessions are written in the order of their numbers."""
    return f"bench-session-{number:012d}"


def write_flight(
    ring_dir: Path,
    archive_dir: Path,
    records: int,
    progress: Callable[[float], None] = lambda _share: None,
    *,
    unsure_from: int | None = None,
) -> Written:
    """Write *records* rows by four workers, four requests to a session, and seal what is due in between.

    Args:
        ring_dir: Folder for ring files; made when it is missing.
        archive_dir: Folder for the archive's segments.
        records: Rows; a multiple of four.
        progress: Told the share that is done.
        unsure_from: Row from which on one release's answers are less sure; None for never.

    Raises:
        CannotRun: If rings or archive cannot be had, or a row was lost.
    """
    workers = [Recorder.open(ring_dir, "bench", settings=RecorderSettings(sensors=False)) for _ in range(WORKERS)]
    archiver = Archiver(ring_dir, archive_dir, Limits())
    draw = random.Random(1)
    try:
        if lost := next((worker.loss for worker in workers if worker.loss), None):
            raise CannotRun(f"no ring files in {ring_dir} ({lost})", "free some memory in /dev/shm")
        archiver.look()
        for number in range(records):
            unsure = unsure_from is not None and number >= unsure_from and number % len(_RELEASES) == UNSURE
            _request(workers[number % WORKERS], number, draw, 0.3 if unsure else 1.0)
            if number % LOOK_EVERY == LOOK_EVERY - 1:
                archiver.look()
                progress(number / records)
        archiver.look()
        counts = archiver.take_counts()
        gone = sum(counts.counters.get("telemetry_archive_rows_lost_total", {}).values())
        if archiver.note != "ok" or gone:
            raise CannotRun(
                f"the archive lost {gone} rows ({archiver.note})", "free some space in the temporary folder"
            )
        segments = list(archive_dir.glob("*.npz"))
        return Written(
            rows=records,
            archived=int(counts.value("telemetry_archive_rows_total")),
            archive_bytes=sum(path.stat().st_size for path in segments),
            segments=len(segments),
        )
    finally:
        for worker in workers:
            worker.close()


def _request(worker: Recorder, number: int, draw: random.Random, sure: float) -> None:
    """Record one request with the stages and attributes of the sentiment service."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "route": _ROUTE,
        "headers": (
            (b"user-agent", b"okhttp/4.9"),
            (b"x-client-release", _RELEASES[number % len(_RELEASES)]),
            (b"x-session-id", session_id(number // REQUESTS_PER_SESSION).encode()),
        ),
    }
    begun = worker.begin(scope)
    if begun is None:
        raise CannotRun("a request was not recorded", "run `inferdeck doctor`")
    record, length = begun[1], draw.randrange(5, 900)
    with record.stage("sentiment.preprocess", input_length=length, cleaned_length=length):
        pass
    with record.stage("scheduler.dispatch") as dispatch:
        with record.stage("sentiment.tokenizer", tokens=length // 3, seq_len=length // 3, padding_ratio=0.0):
            pass
        with record.stage("model.forward", seq_len=length // 3, batch_size=1, model_version="v1"):
            pass
        dispatch.set(queue_wait_ns=draw.randrange(1_000_000))
    with record.stage("postprocess.confidence"):
        record.set(
            input_length=length,
            tokens=length // 3,
            confidence=draw.random() * sure,
            label=_LABELS[number % len(_LABELS)],
            model_version="v1",
        )
    worker.finish(begun, scope, 200, False)
