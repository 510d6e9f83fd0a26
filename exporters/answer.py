"""A question about requests, and the answer with its worth: where was looked, how far back, what was unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from exporters import lookup
from exporters.archive.reader import Archive
from exporters.ring_folder import READ_ERRORS, open_rings
from exporters.trace_view import TraceView, rfc3339
from probes.reader import RingFile

__all__ = ["FOUND", "MOST_ERRORS", "NOT_FOUND", "OLDER", "STREAM_ROWS", "Answer", "Question", "answer"]

FOUND: Final = "found"
NOT_FOUND: Final = "not_found"
# Not the same: the request may well have been there.
OLDER: Final = "older_than_retention"
MOST_ERRORS: Final = 100
# Below the folder of the requests' rows: those of messages. As in service/stream/records.py; held equal by its tests.
STREAM_ROWS: Final = "stream"


@dataclass(frozen=True)
class Question:
    """What is looked for: exactly one of session, trace, slow and errors.

    Attributes:
        session_id: A session, as it came in the header or was generated.
        trace_id: 32 hex digits.
        slow: How many of the slowest.
        errors: Requests that went wrong.
        since_ns: Only requests of this time or later, ns since 1970, for slow and errors; for an id: the time from
            which it may be, which tells one that is not kept any more from one that is not there.
    """

    session_id: str | None = None
    trace_id: str | None = None
    slow: int | None = None
    errors: bool = False
    since_ns: int | None = None


@dataclass(frozen=True)
class Answer:
    """What was found.

    Attributes:
        traces: The requests.
        result: found, not_found, or older_than_retention: nothing found, and rows of the asked time are not kept.
        sources: Where was looked: ring, archive.
        kept_since_unix_ns: When the oldest request started whose row is kept; None when no row is.
        unreadable: Segments of the archive that could not be read -> why.
    """

    traces: list[TraceView]
    result: str
    sources: tuple[str, ...]
    kept_since_unix_ns: int | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        """Return all but the traces as JSON values."""
        since = self.kept_since_unix_ns
        return {
            "sources": list(self.sources),
            "result": self.result,
            "kept_since": None if since is None else rfc3339(since),
            "unreadable": [{"segment": name, "reason": why} for name, why in sorted(self.unreadable.items())],
        }


def answer(question: Question, ring_dir: Path | str, archive_dir: Path | str | None = None) -> Answer:
    """Look in the rings, then in the archive.

    Args:
        question: What is looked for.
        ring_dir: Folder of ring files.
        archive_dir: Folder of the archive's segments; None, or one that is missing, for the rings alone.
    """
    folder = Path(ring_dir)
    archive = Archive(Path(archive_dir)) if archive_dir is not None and Path(archive_dir).is_dir() else None
    # Before looking: what is removed meanwhile must not make a miss look like "never there".
    oldest = _kept_since(folder, archive)
    traces = _look(question, folder, archive)
    by_id = question.session_id is not None or question.trace_id is not None
    older = by_id and oldest is not None and question.since_ns is not None and question.since_ns < oldest
    return Answer(
        traces=traces,
        result=FOUND if traces else OLDER if older else NOT_FOUND,
        sources=("ring", "archive") if archive else ("ring",),
        kept_since_unix_ns=oldest,
        unreadable=archive.unreadable if archive else {},
    )


def _look(question: Question, folder: Path, archive: Archive | None) -> list[TraceView]:
    """Return what the question asks for; by an id the messages that a stream of queries took of it as well."""
    if question.session_id is not None:
        found = lookup.find_session(folder, question.session_id, archive=archive)
        return _with(found, lookup.find_session(folder / STREAM_ROWS, question.session_id))
    if question.trace_id is not None:
        found = lookup.find_trace(folder, question.trace_id, archive=archive)
        return _with(found, lookup.find_trace(folder / STREAM_ROWS, question.trace_id))
    if question.slow is not None:
        return lookup.slowest(folder, question.slow, question.since_ns, archive=archive)
    return lookup.errors(folder, MOST_ERRORS, question.since_ns, archive=archive)


def _with(requests: list[TraceView], messages: list[TraceView]) -> list[TraceView]:
    """Return both by their start."""
    return sorted([*requests, *messages], key=lambda one: one.start_unix_ns) if messages else requests


def _kept_since(folder: Path, archive: Archive | None) -> int | None:
    """Return when the oldest request started whose row is kept."""
    found = [archive.oldest_unix_ns()] if archive else []
    for ring in open_rings(folder):
        if isinstance(ring, RingFile):
            try:
                rows = ring.read(max(0, ring.head() - ring.layout.ring_rows), 16).rows
            except READ_ERRORS:
                continue
            found.append(int(rows["start_unix_ns"].min()) if len(rows) else None)
    return min((start for start in found if start is not None), default=None)
