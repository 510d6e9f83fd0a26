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
    from runbooks.pages import Page

__all__ = ["Query", "look_up", "parse_duration", "ring_folder"]

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
        within_s: A session or trace is said to be of the last so many seconds; None when nobody said so.
    """

    session: str | None = None
    trace: str | None = None
    slow: int | None = None
    errors: bool = False
    since_s: float = 900.0
    within_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what was asked, without what was not."""
        asked = {"session_id": self.session, "trace_id": self.trace, "slow": self.slow, "errors": self.errors or None}
        given = {key: value for key, value in asked.items() if value is not None}
        back = self.since_s if self.slow or self.errors else self.within_s
        return given | ({"since_s": back} if back is not None else {})


def parse_duration(text: str) -> float:
    """Return the seconds of a duration, in the grammar of the exporter's look-up page.

    Raises:
        CannotRun: If it is none.
    """
    from exporters.duration import parse_duration as parse

    try:
        return parse(text)
    except ValueError as error:
        raise CannotRun(f"{text!r} is no duration", str(error)) from error


def ring_folder(settings: StackSettings, find_lone: Callable[[], Path | None] | None = None) -> Path:
    """Return the folder of the rows: as set, else the stack's, else that of the only service without a stack.

    Args:
        settings: Where the stack is.
        find_lone: Returns the folder of the only service without a stack, or None; as the exporter does by default.

    Raises:
        CannotRun: If several services record without a stack.
    """
    from exporters.lone_folder import SeveralFoldersError, lone_ring_dir

    if settings.ring_dir is not None:
        return settings.ring_path
    # a stack may have been started with other settings than this shell has
    state = read_state(settings.state_path)
    if state is not None:
        return Path(state.ring_dir)
    if settings.ring_path.is_dir():
        return settings.ring_path
    # a service that runs without a stack records below the recorder's own default folder, under its own name
    try:
        return (find_lone or lone_ring_dir)() or settings.ring_path
    except SeveralFoldersError as error:
        what, _, mend = str(error).partition(": ")
        raise CannotRun(what, mend) from error


def look_up(
    query: Query,
    folder: Path,
    archive: Path | None = None,
    clock: Callable[[], float] = time.time,
    jaeger: str | None = None,
) -> dict[str, Any]:
    """Find requests: in the rows first, then in Jaeger as well, which may hold what they no longer do.

    Args:
        query: What is looked for.
        folder: Folder of the rows.
        archive: Folder of the exporter's archive, for rows that are no longer in theirs.
        clock: Wall clock, in seconds.
        jaeger: Address of a Jaeger, which is asked as well; None for the rows alone.

    Returns:
        The payload in the shape of `trace`.

    Raises:
        CannotRun: If the question is none, or there are no rows at all, and no Jaeger.
    """
    from exporters.answer import Question, answer

    _check(query)
    if not folder.is_dir() and not (archive and archive.is_dir()) and jaeger is None:
        raise CannotRun(
            f"no rows: there is no folder {folder}",
            "start the stack with `inferdeck up`, or set INFERDECK_STATE_DIR to the state folder of one that runs "
            "elsewhere, or INFERDECK_RING_DIR",
        )
    began = time.monotonic()
    back = query.within_s if query.session is not None or query.trace is not None else query.since_s
    since_ns = None if back is None else max(0, int((clock() - back) * 1e9))
    found = answer(Question(query.session, query.trace, query.slow, query.errors, since_ns), folder, archive)
    views, about = found.traces, found.about()
    if jaeger is not None:
        from inferdeck.jaeger_look_up import ask_jaeger

        views, theirs = ask_jaeger(jaeger, query, views, clock)
        about |= {"jaeger": theirs}
        if theirs["error"]:
            # "not found" would be a guess
            about["result"] = about["result"] if views else "incomplete"
        else:
            about["sources"].append("jaeger")
            about["result"] = "found" if views else about["result"]
    took = round(time.monotonic() - began, 6)
    # newest last, as a log; more than this of one session are not what a person reads
    traces = explained(views[-MAX_TRACES:], folder, archive)
    return {"query": query.to_json(), **about, "ring_dir": str(folder), "lookup_s": took, "traces": traces}


def look_up_elsewhere(query: Query, endpoints: str, token: str = "", deadline_s: float = 5.0) -> dict[str, Any]:
    """Ask exporters on other machines.

    Args:
        query: What is looked for.
        endpoints: `http://host:port` or `dns://name:port`, with commas between them.
        token: What they ask for, if they do.
        deadline_s: How long to wait for all of them together, in seconds.

    Returns:
        The payload in the shape of `trace`, with who answered.

    Raises:
        CannotRun: If the question or an endpoint is none, or nobody answered.
    """
    from exporters.endpoints import EndpointError, ask_endpoints, parse_endpoints

    _check(query)
    asked = {key: str(value) for key, value in query.to_json().items() if key not in ("errors", "since_s")}
    asked |= {"errors": "1"} if query.errors else {}
    asked |= {"since": f"{round(since)}s"} if (since := query.to_json().get("since_s")) is not None else {}
    try:
        found = ask_endpoints(parse_endpoints(endpoints), asked, token=token, deadline_seconds=deadline_s)
    except EndpointError as error:
        raise CannotRun(f"--endpoints: {error}", "see `inferdeck trace --help`") from error
    if not found.answered:
        endpoint, why = next(iter(found.failed.items()))
        raise CannotRun(
            f"none of {found.asked} exporters answered; {endpoint}: {why}", "check the addresses given to --endpoints"
        )
    # their rows are not here to compare with
    traces = explained(found.traces[-MAX_TRACES:], None)
    return {"query": query.to_json(), **found.about(), "lookup_s": found.lookup_s, "traces": traces}


def _check(query: Query) -> None:
    """Refuse a question that is none, or two, or asks for a trace by what no trace is called.

    Raises:
        CannotRun: If it is or does.
    """
    if sum([query.session is not None, query.trace is not None, query.slow is not None, query.errors]) != 1:
        raise CannotRun("ask for one of SESSION_ID, --trace ID, --slow N and --errors", "see `inferdeck trace --help`")
    # "not found" would send the reader to look elsewhere for what is nowhere
    if query.trace is not None and not re.fullmatch(r"[0-9a-fA-F]{32}", query.trace):
        raise CannotRun(
            f"{query.trace[:64]!r} is no trace id: those are 32 hexadecimal digits",
            "give it as a trace or a log line shows it, or look for a session: inferdeck trace SESSION_ID",
        )


def explained(views: list[TraceView], folder: Path | None, archive: Path | None = None) -> list[dict[str, Any]]:
    """Return the traces as JSON values, with the slow stage, why, and what to read on, as the runbooks judge it.

    Args:
        views: As `exporters.lookup` returns them.
        folder: Folder of the rows: what is slow is told from the other requests; None when they are not here.
        archive: Folder of the exporter's archive.
    """
    from runbooks.explain import explain, explain_traces

    told = [explain(view, None) for view in views] if folder is None else explain_traces(views, folder, archive)
    pages: dict[str, Page] = {}
    if any(view.cause for view in told):
        from runbooks.pages import load_pages

        pages = load_pages()
    return [view.to_dict() | {"hint": _hint(pages.get(view.cause))} for view in told]


def _hint(page: Page | None) -> str:
    """Return the alert and the page that go with a cause, or nothing."""
    return f"alert {page.alert}, runbooks/{page.path}" if page else ""
