"""How long Jaeger takes to find a session among many traces: a real one, on loopback, filled by OTLP.

Bounded   `traces` requests of seven spans in its memory, about 1.5 GB for 100,000; it is stopped afterwards.
Absent    no Jaeger here, or one that does not start or take spans: no figure, and why.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from exporters.otlp import export_request, resource_bytes, view_spans
from exporters.otlp_http import HttpTransport
from exporters.row_plan import Value
from exporters.trace_view import SpanView, TraceView
from inferdeck.bench.flight import REQUESTS_PER_SESSION, session_id
from inferdeck.http_get import Unreachable, get
from inferdeck.jaeger_api import JaegerApi, JaegerError
from inferdeck.jaeger_views import views_of
from inferdeck.stack.jaeger import find_jaeger, render_jaeger
from inferdeck.stack.ports import free_ports

__all__ = ["JaegerFigure", "measure_jaeger"]

# issue 7, "Figures"; the article that this product follows allows 5 s
SECONDS_MAX: Final = 1.0
_READY_SECONDS: Final = 30.0
_BATCH: Final = 256
_STAGES: Final = (
    ("network.receive", "POST /v1/sentiment"),
    ("sentiment.preprocess", "POST /v1/sentiment"),
    ("scheduler.dispatch", "POST /v1/sentiment"),
    ("sentiment.tokenizer", "scheduler.dispatch"),
    ("model.forward", "scheduler.dispatch"),
    ("postprocess.confidence", "POST /v1/sentiment"),
)


@dataclass
class JaegerFigure:
    """What was measured.

    Attributes:
        traces: Traces that Jaeger held.
        seconds: Of each look-up by session, present and absent in turn; empty when it was not measured.
        wrong: Answers that were not what was sent.
        rss_bytes: Jaeger's memory with them.
        missing: Why there is no figure; empty when there is.
    """

    traces: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    rss_bytes: int = 0
    missing: str = ""

    @property
    def median(self) -> float | None:
        """Return the median of the look-ups, in seconds; None without any."""
        return round(statistics.median(self.seconds), 6) if self.seconds else None


def measure_jaeger(
    traces: int, look_ups: int, progress: Callable[[float], None] = lambda _share: None, program: Path | None = None
) -> JaegerFigure:
    """Fill a Jaeger and look sessions up in it.

    Args:
        traces: Requests to send, four to a session.
        look_ups: Sessions to look up, every second one absent.
        progress: Told the share that is done.
        program: Jaeger; the one that the stack would start by default.
    """
    program = program or find_jaeger()
    if traces == 0 or program is None:
        return JaegerFigure(missing="not asked for" if traces == 0 else "no Jaeger here; `make jaeger` compiles one")
    traces = -(-traces // REQUESTS_PER_SESSION) * REQUESTS_PER_SESSION
    try:
        with (
            tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as folder,
            _running(program, Path(folder), traces) as (url, target, process),
        ):
            now = time.time()
            _fill(target, traces, int(now * 1e9), progress)
            figure = JaegerFigure(traces)
            _wait_for(url, traces, now)
            figure.rss_bytes = psutil.Process(process.pid).memory_info().rss
            _look_up(figure, url, look_ups, now)
            return figure
    except (JaegerError, OSError, psutil.Error) as error:
        return JaegerFigure(missing=f"{type(error).__name__}: {error}")


@contextmanager
def _running(program: Path, folder: Path, traces: int) -> Iterator[tuple[str, str, subprocess.Popen[bytes]]]:
    """Run Jaeger; yield where it is asked, where spans go, and its process."""
    query, otlp = free_ports(2)
    config = folder / "jaeger.json"
    config.write_text(render_jaeger("127.0.0.1", query, otlp, traces))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(program), "--config", str(config)], stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{query}"
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise JaegerError(f"Jaeger does not start: {(folder / 'log').read_text(errors='replace')[-300:]}")
            time.sleep(0.1)
        yield url, f"http://127.0.0.1:{otlp}", process
    finally:
        process.kill()
        process.wait(20)


def _answers(url: str) -> bool:
    try:
        return get(f"{url}/api/services", 1.0)[0] == 200
    except Unreachable:
        return False


def _fill(target: str, traces: int, end_unix_ns: int, progress: Callable[[float], None]) -> None:
    """Send the traces, four to a session, spread over the last hour."""
    transport, draw = HttpTransport(target, timeout_seconds=30.0), random.Random(1)
    resource = resource_bytes({"service.name": "bench", "service.instance.id": "bench"})
    for first in range(0, traces, _BATCH):
        numbers = range(first, min(traces, first + _BATCH))
        starts = (end_unix_ns - (traces - number) * 3_600_000_000_000 // traces for number in numbers)
        spans = [view_spans(_request(number, start, draw)) for number, start in zip(numbers, starts, strict=True)]
        status = transport.post(export_request({resource: spans}, "0"), compressed=False).status
        if status != 200:
            raise JaegerError(f"Jaeger took no spans: {status or 'no answer'}")
        progress(first / traces)
    transport.close()


def _request(number: int, start_unix_ns: int, draw: random.Random) -> TraceView:
    session, length = session_id(number // REQUESTS_PER_SESSION), draw.randrange(5, 900)
    known: dict[str, Value] = {"session.id": session, "input_length": length}
    root = SpanView(
        _STAGES[0][1],
        "",
        0.0,
        0.02,
        {**known, "session_id": session, "http.route": "/v1/sentiment", "outcome": "ok", "confidence": draw.random()},
        f"{number + 1:016x}",
    )
    spans = [
        SpanView(name, parent, 0.001 * place, 0.001, known, f"{number + 1 + (place + 1 << 40):016x}")
        for place, (name, parent) in enumerate(_STAGES)
    ]
    trace = f"{draw.getrandbits(128):032x}"
    return TraceView(
        trace, session, "", 0.02, "ok", "", spans=[root, *spans], outcome="ok", start_unix_ns=start_unix_ns
    )


def _wait_for(url: str, traces: int, now: float) -> None:
    """Wait until the last session can be found: spans lie in a batch for a moment."""
    last, deadline = session_id(traces // REQUESTS_PER_SESSION - 1), time.monotonic() + 30.0
    while len(JaegerApi(url, 30.0).session(last, now - 7200, now + 60)) < REQUESTS_PER_SESSION:
        if time.monotonic() > deadline:
            raise JaegerError("what was sent cannot be found in Jaeger")
        time.sleep(0.2)


def _look_up(figure: JaegerFigure, url: str, look_ups: int, now: float) -> None:
    sessions, draw = figure.traces // REQUESTS_PER_SESSION, random.Random(2)
    for number in range(look_ups):
        present = number % 2 == 0
        session = session_id(draw.randrange(sessions) + (0 if present else sessions))
        began = time.perf_counter()
        found = views_of(JaegerApi(url, 30.0).session(session, now - 7200, now + 60), session)
        figure.seconds.append(time.perf_counter() - began)
        figure.wrong += len(found) != (REQUESTS_PER_SESSION if present else 0)
