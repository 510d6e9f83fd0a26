"""Behind `inferdeck trace`: finds requests in the rows and has them explained."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.settings import StackSettings
from inferdeck.stack.state import read_state

if TYPE_CHECKING:
    from exporters.trace_view import TraceView

__all__ = ["Query", "look_up", "parse_duration", "ring_folder"]

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# an answer of more requests than this is no answer for a person; --json with a narrower question goes on
MAX_TRACES = 200


@dataclass(frozen=True)
class Query:
    """What is looked for: exactly one of session, trace, slow and errors.

    Attributes:
        session: Session id as the client sent it.
        trace: Trace id, 32 hexadecimal digits.
        slow: How many of the slowest.
        errors: Requests that went wrong.
        since_s: Only requests of the last so many seconds, for slow and errors.
    """

    session: str | None = None
    trace: str | None = None
    slow: int | None = None
    errors: bool = False
    since_s: float = 900.0

    def to_json(self) -> dict[str, Any]:
        """Return what was asked, without what was not."""
        asked = {"session_id": self.session, "trace_id": self.trace, "slow": self.slow, "errors": self.errors or None}
        given = {key: value for key, value in asked.items() if value is not None}
        return given | ({"since_s": self.since_s} if self.slow or self.errors else {})


def parse_duration(text: str) -> float:
    """Return the seconds of "90s", "15m", "2h" or "1d".

    Raises:
        CannotRun: If it is none.
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smhd])", text.strip())
    if not found:
        raise CannotRun(f"{text!r} is no duration", "write it like 90s, 15m, 2h or 1d")
    return float(found[1]) * UNITS[found[2]]


def ring_folder(settings: StackSettings) -> Path:
    """Return the folder of the rows: as set, else the stack's, else that of a service that runs without a stack."""
    from probes.settings import default_ring_dir

    if settings.ring_dir is not None:
        return settings.ring_path
    # a stack may have been started with other settings than this shell has
    state = read_state(settings.state_path)
    if state is not None:
        return Path(state.ring_dir)
    # a service that runs without a stack records into the recorder's own default folder
    lone = default_ring_dir("sentiment")
    return settings.ring_path if settings.ring_path.is_dir() or not lone.is_dir() else lone


def look_up(query: Query, folder: Path, clock: Callable[[], float] = time.time) -> dict[str, Any]:
    """Find requests.

    Args:
        query: What is looked for.
        folder: Folder of the rows.
        clock: Wall clock, in seconds.

    Returns:
        The payload in the shape of `trace`.

    Raises:
        CannotRun: If the question is none, or there are no rows at all.
    """
    from exporters import lookup

    if sum([query.session is not None, query.trace is not None, query.slow is not None, query.errors]) != 1:
        raise CannotRun("ask for one of SESSION_ID, --trace ID, --slow N and --errors", "see `inferdeck trace --help`")
    if not folder.is_dir():
        raise CannotRun(
            f"no rows: there is no folder {folder}", "start the stack with `inferdeck up`, or set INFERDECK_RING_DIR"
        )
    began = time.monotonic()
    # rows carry nanoseconds since 1970
    since_ns = int((clock() - query.since_s) * 1e9)
    if query.session is not None:
        views = lookup.find_session(folder, query.session)
    elif query.trace is not None:
        views = lookup.find_trace(folder, query.trace)
    elif query.slow is not None:
        views = lookup.slowest(folder, query.slow, since_ns)
    else:
        views = lookup.errors(folder, MAX_TRACES, since_ns)
    found = round(time.monotonic() - began, 6)
    # newest last, as a log; more than this of one session are not what a person reads
    traces = explained(views[-MAX_TRACES:], folder)
    return {"query": query.to_json(), "sources": ["ring"], "ring_dir": str(folder), "lookup_s": found, "traces": traces}


def explained(views: list[TraceView], folder: Path) -> list[dict[str, Any]]:
    """Return the traces as JSON values, with the slow stage, why, and what to read on, as the runbooks judge it.

    Args:
        views: As `exporters.lookup` returns them.
        folder: Folder of the rows: what is slow is told from the other requests.
    """
    from runbooks.explain import explain_traces

    return [view.to_dict() | {"hint": _hint(view)} for view in explain_traces(views, folder)]


def _hint(view: TraceView) -> str:
    """Return the alert and the page that go with a cause, or nothing."""
    if "event loop was blocked" in view.why:
        return "alert EventLoopBlocked, runbooks/EventLoopBlocked.md"
    if view.outcome == "never_ended":
        return "alert ServiceDown, runbooks/ServiceDown.md"
    return ""
