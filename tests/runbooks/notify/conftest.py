"""Receivers on this machine that write down what they are sent, and a result to send."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runbooks.notify.links import Links
from runbooks.notify.message import Message, message_of

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "inferdeck/schemas/triage.schema.json").read_text(encoding="utf-8"))
LINKS = Links(
    runbooks="http://triage.example/",
    triage="http://triage.example",
    grafana="http://grafana.example",
    jaeger="http://jaeger.example",
)
RESULT: dict[str, Any] = {
    "id": "20261130T080300Z-0123abcd",
    "alert": "EventLoopBlocked",
    "window": {
        "from": "2026-11-30T07:48:00.000Z",
        "to": "2026-11-30T08:03:00.000Z",
        "onset": "2026-11-30T08:02:00.500Z",
        "ended": None,
        "signal": "latency",
    },
    "abstained": False,
    "verdict": {
        "slug": "event_loop_blocked",
        "layer": "runtime",
        "confidence": 0.97,
        "summary": "Synchronous work runs on the event loop.",
    },
    "impact": {
        "since": "2026-11-30T08:02:00.500Z",
        "until": "2026-11-30T08:03:00.000Z",
        "still_going": True,
        "requests": 1200,
        "bad_requests": 84,
        "slow_requests": 80,
        "unfinished_requests": 4,
        "sessions": 300,
        "bad_sessions": 21,
        "by_outcome": {"ok": 1200},
        "p95_seconds": None,
    },
    "differs": {"findings": [], "compared": [], "stage": {}, "summary": ""},
    "candidates": [
        {
            "slug": "event_loop_blocked",
            "layer": "runtime",
            "score": 0.97,
            "reasons": ["the loop was late for 10% of the time", "others stand still", "a stack was seen", "a fourth"],
            "confidence": 0.97,
            "explained_by": "",
        }
    ],
    "evidence": [],
    "unusual": [],
    "missing_sources": [],
    "missing": [],
    "runbook": "runbooks/EventLoopBlocked.md",
    "mitigations": [
        {"do": "inferdeck trace --slow 5 --since 15m", "undo": "none needed: it only reads"},
        {"do": "git revert --no-edit COMMIT", "undo": "git revert --no-edit HEAD"},
    ],
    "traces": ["0" * 31 + "1", "0" * 31 + "2", "0" * 31 + "3", "0" * 31 + "4"],
    "report": "/state/reports/20261130T080300Z-0123abcd.json",
}


def result_of(**changes: Any) -> dict[str, Any]:
    """Return a result in the triage verb's shape, but for the changes."""
    whole = copy.deepcopy(RESULT) | changes
    Draft202012Validator(SCHEMA).validate(whole)
    return whole


def message(**changes: Any) -> Message:
    """Return the message of a result."""
    return message_of(result_of(**changes), LINKS, starts_at=1_796_025_750.0)


@dataclass(frozen=True)
class Answer:
    """What a receiver answers, after a while."""

    status: int = 200
    body: bytes = b"ok"
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


@dataclass
class Receiver:
    """An HTTP server of its own; answers in turn, the last one for ever."""

    url: str = ""
    answers: list[Answer] = field(default_factory=lambda: [Answer()])
    requests: list[dict[str, Any]] = field(default_factory=list)

    def bodies(self) -> list[Any]:
        """Return the JSON of each request."""
        return [json.loads(one["body"]) for one in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a port of its own."""
    known = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            known.requests.append(
                {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
            )
            answer = known.answers.pop(0) if len(known.answers) > 1 else known.answers[0]
            time.sleep(answer.seconds)
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            # A sender that has given up is what some tests are about.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(answer.body)

        do_GET = do_PATCH = do_PUT = do_DELETE = do_POST  # noqa: N815  # the standard library's names

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    known.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
