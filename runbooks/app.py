"""The triage service as a process: `python -m runbooks`."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import uvicorn
from pydantic import ValidationError

from exporters.protocol import MOST_CONNECTIONS, BoundedHeadProtocol
from runbooks.engine import triage
from runbooks.inbox import Inbox
from runbooks.settings import TriageSettings
from runbooks.sources import Sources
from runbooks.store import ReportStore
from runbooks.watch import TriageWatch
from runbooks.webhook import make_app

__all__ = ["CannotStartError", "main", "serve"]

_log = logging.getLogger("runbooks")


class CannotStartError(Exception):
    """The service cannot start; the text says why, and the mend."""


def main(overrides: Mapping[str, Any] | None = None) -> int:
    """Run the service until SIGTERM or SIGINT.

    Args:
        overrides: Settings by field name that win over the environment.

    Returns:
        Exit status: 0 stopped, 2 could not start (one line on stderr says why, and the mend).
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    # One line per query would drown what matters.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        serve(TriageSettings(**(overrides or {})))
    except ValidationError as error:
        first = error.errors()[0]
        # The value itself is not shown: it may be a secret.
        _log.error("cannot start: %s: %s", _variable(first["loc"]), first["msg"].removeprefix("Value error, "))
        return 2
    except CannotStartError as error:
        _log.error("cannot start: %s", error)
        return 2
    return 0


def _variable(place: Sequence[int | str]) -> str:
    """Return the variable of the environment that sets the field at *place* of the settings."""
    name = ".".join(map(str, place))
    if not name.islower():
        return name or "settings"
    shared = {"ring_dir", "state_dir", "prometheus_url"}
    return f"INFERDECK_{name.upper()}" if name in shared else f"INFERDECK_TRIAGE_{name.upper()}"


def make_watch(settings: TriageSettings) -> TriageWatch:
    """Return the thread that works off the incidents of a state folder; it is not started."""
    sources = Sources.open(settings.ring_dir, settings.prometheus_url or None, settings.state_dir / "archive")

    def look(alert: str, at: float) -> Mapping[str, Any]:
        return triage(sources, alert=alert or None, at=at, window=settings.lookback_seconds)

    return TriageWatch(
        Inbox(settings.state_dir / "triage", settings.most_waiting),
        ReportStore(settings.state_dir / "reports", settings.most_reports),
        look,
    )


def serve(settings: TriageSettings) -> None:
    """Serve until stopped by a signal.

    Raises:
        CannotStartError: If the port is taken.
    """
    stopping = threading.Event()
    with _stopped_by_signals(stopping), contextlib.closing(_listen(settings.host, settings.port)) as listener:
        watch = make_watch(settings)
        watch.start()
        try:
            host, port = listener.getsockname()[:2]
            _log.info("notifications on http://%s:%d/webhook, reports below %s", host, port, settings.state_dir)
            config = uvicorn.Config(
                make_app(watch, settings.token.get_secret_value() if settings.token else None),
                http=BoundedHeadProtocol,
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=3,
                limit_concurrency=MOST_CONNECTIONS,
            )
            if not stopping.is_set():
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            watch.stop()
    _log.info("stopped; %d incidents wait for the next start", len(watch.inbox))


@contextlib.contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Take SIGTERM and SIGINT as a wish to stop; the web server raises them again after its own end."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise CannotStartError(
            f"port {port} on {host} cannot be had ({error.strerror}): stop what uses it, or set INFERDECK_TRIAGE_PORT"
        ) from error
    return listener
