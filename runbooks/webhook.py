"""The pages of the triage service: notifications in, reports out, and figures about itself."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from exporters.serving import only_known_hosts
from runbooks.inbox import InboxFullError
from runbooks.notify.notifier import FollowUpCounter, Notifier
from runbooks.pages import PAGES_DIR
from runbooks.payloads import MOST_BYTES, PayloadError, read_payload
from runbooks.report_page import render_list, render_page
from runbooks.watch import TriageWatch

__all__ = ["NotificationCounter", "make_app"]

_RESULTS: Final = ("accepted", "known", "selftest", "refused", "unauthorized", "full")
# Self-tests are asked for within seconds; 32 of them are some hours of a cron job, in about 5 kB.
_MOST_SELFTESTS: Final = 32
# For a whole notification to arrive. Senders send one at once; a body that never ends must not keep one of the bounded
# number of connections.
_BODY_SECONDS: Final = 5.0
_PAGE: Final = re.compile(r"([A-Za-z0-9]{1,100})\.md")


class NotificationCounter(Collector):
    """Figures of the service about itself.

    Args:
        watch: The thread that works.
    """

    def __init__(self, watch: TriageWatch) -> None:
        self.watch = watch
        self.notifications: Counter[str] = Counter(dict.fromkeys(_RESULTS, 0))

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        taken = CounterMetricFamily(
            "telemetry_triage_notifications", "Notifications by what became of them.", labels=["result"]
        )
        for result, count in sorted(self.notifications.items()):
            taken.add_metric([result], count)
        yield taken
        runs = CounterMetricFamily("telemetry_triage_runs", "Triages by how they ended.", labels=["result"])
        for result, count in sorted(self.watch.runs.items()):
            runs.add_metric([result], count)
        yield runs
        inbox = self.watch.inbox
        yield GaugeMetricFamily("telemetry_triage_waiting_incidents", "Incidents that wait.", value=len(inbox))
        yield GaugeMetricFamily(
            "telemetry_triage_last_seconds", "Duration of the last triage.", self.watch.last_seconds
        )
        yield CounterMetricFamily(
            "telemetry_triage_write_errors", "Incidents that could not be written to disk.", value=inbox.write_errors
        )


def make_app(
    watch: TriageWatch, token: str | None = None, host: str = "127.0.0.1", notifier: Notifier | None = None
) -> Starlette:
    """Return the service's ASGI app.

    Args:
        watch: The thread that works; it is started by the caller.
        token: Bearer token that senders and readers must show; None asks for none.
        host: Address that the port is bound to; on a loopback address, requests under foreign names are refused.
        notifier: Hears of alerts that end, and has figures of its own; it is started by the caller.
    """
    pages = _Pages(watch, token, notifier)
    return Starlette(
        routes=[
            Route("/webhook", pages.webhook, methods=["POST"]),
            Route("/reports", pages.reports),
            Route("/reports/{report_id}", pages.report),
            Route("/selftests", pages.selftests),
            Route("/runbooks/{page}", pages.runbook),
            Route("/healthz", pages.healthz),
            Route("/metrics", pages.metrics),
        ],
        middleware=[only_known_hosts(host)],
    )


class _Pages:
    """The endpoints, over one watch."""

    def __init__(self, watch: TriageWatch, token: str | None, notifier: Notifier | None) -> None:
        self._watch, self._token, self._notifier = watch, token, notifier
        self._counter = NotificationCounter(watch)
        self._registry = CollectorRegistry()
        self._registry.register(self._counter)
        if notifier is not None:
            self._registry.register(FollowUpCounter(notifier))
        self._selftests: deque[dict[str, Any]] = deque(maxlen=_MOST_SELFTESTS)

    async def webhook(self, request: Request) -> Response:
        if not self._allowed(request):
            return self._refuse("unauthorized", 401, "show the token: Authorization: Bearer ...")
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _body(request)
            notification = read_payload(body)
            taken = await run_in_threadpool(self._watch.inbox.accept, notification)
        except _TooLargeError as error:
            return self._refuse("refused", 413, str(error))
        except TimeoutError:
            return self._refuse("refused", 408, f"the notification did not arrive within {_BODY_SECONDS:g} seconds")
        except PayloadError as error:
            return self._refuse("refused", 400, str(error))
        except InboxFullError as error:
            return self._refuse("full", 503, f"{error}; send it again later")
        except ClientDisconnect:
            return self._refuse("refused", 400, "the sender left before the end of its notification")
        if self._notifier is not None:
            self._notifier.ended(notification)
        # A self-test's alert has arrived, which is all it is for: it is noted and starts no triage.
        tests = notification.selftests()
        arrived = {"received_unix": round(time.time(), 3), "sender": notification.sender}
        self._selftests.extend({"id": run} | arrived for run in tests)
        self._counter.notifications["accepted" if taken else "selftest" if tests else "known"] += 1
        return JSONResponse({"incidents": [incident.name for incident in taken]}, status_code=202)

    async def reports(self, request: Request) -> Response:
        if not self._allowed(request):
            return self._refuse("unauthorized", 401, "show the token: Authorization: Bearer ...")
        found = await run_in_threadpool(self._watch.store.overview)
        return HTMLResponse(render_list(found)) if _reads(request) else JSONResponse({"reports": found})

    async def report(self, request: Request) -> Response:
        if not self._allowed(request):
            return self._refuse("unauthorized", 401, "show the token: Authorization: Bearer ...")
        found = await run_in_threadpool(self._watch.store.load, request.path_params["report_id"])
        if not found:
            return _no(404, "no such report; GET /reports lists them")
        return HTMLResponse(await run_in_threadpool(render_page, found)) if _reads(request) else JSONResponse(found)

    async def selftests(self, request: Request) -> Response:
        if not self._allowed(request):
            return self._refuse("unauthorized", 401, "show the token: Authorization: Bearer ...")
        return JSONResponse({"selftests": list(self._selftests)})

    async def runbook(self, request: Request) -> Response:
        """Show a page to whoever follows a message's link; without a token, which a browser does not have."""
        name = _PAGE.fullmatch(request.path_params["page"])
        path = PAGES_DIR / f"{name[1]}.md" if name else None
        if path is None or not path.is_file():
            return _no(404, "no such runbook; runbooks/README.md lists them")
        return PlainTextResponse(await run_in_threadpool(path.read_text, "utf-8"))

    async def healthz(self, _request: Request) -> Response:
        # The process may serve pages while its worker is gone; then it is not healthy.
        working = self._watch.alive
        body: dict[str, Any] = {"status": "ok" if working else "stopped", "waiting": len(self._watch.inbox)}
        return JSONResponse(body, status_code=200 if working else 503)

    async def metrics(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._registry), headers={"content-type": content_type})

    def _allowed(self, request: Request) -> bool:
        if self._token is None:
            return True
        shown = request.headers.get("authorization", "")
        # Compared in constant time, as bytes: a header may hold any Latin-1 letter.
        return hmac.compare_digest(shown.encode("latin-1", "replace"), f"Bearer {self._token}".encode())

    def _refuse(self, result: str, status: int, why: str) -> Response:
        self._counter.notifications[result] += 1
        return _no(status, why)


class _TooLargeError(Exception):
    """A body over the limit."""


async def _body(request: Request) -> bytes:
    """Return the body, read no further than its limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise _TooLargeError(f"payload over {MOST_BYTES} bytes; set max_alerts at the sender")
    return bytes(body)


def _reads(request: Request) -> bool:
    """Return whether a person asks: browsers name HTML first, programs do not."""
    return request.headers.get("accept", "").partition(",")[0].strip().startswith("text/html")


def _no(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status_code=status)
