"""The stream as a process: settings, port, source and consumer put together; `python -m service.stream`."""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.admin import AdminServer, bind
from service.plugins import load_middleware
from service.settings import SettingsError
from service.stream.consumer import Consumer
from service.stream.files import FileSource
from service.stream.letters import FolderSink, Sink
from service.stream.process import Policy
from service.stream.records import Records
from service.stream.settings import StreamSettings
from service.stream.source import Source, SourceFailed
from service.stream.state import StateFailed
from service.stream.stream_metrics import render

__all__ = ["build", "main", "state_path", "web"]

_log = logging.getLogger("service.stream")
_MOST_WINDOWS = 1440


def state_path(settings: StreamSettings) -> Path:
    """Return the folder of this source's state: positions of one source mean nothing in another."""
    if settings.folder is not None:
        where = hashlib.sha256(os.fsencode(settings.folder.expanduser().absolute())).hexdigest()[:8]
        return settings.state_dir / "stream" / f"files-{where}"
    return settings.state_dir / "stream" / f"kafka-{settings.topic}"


def build(settings: StreamSettings) -> Consumer:
    """Return the consumer that the settings ask for.

    Raises:
        SettingsError: If a step cannot be loaded, or Kafka's library is not installed.
    """
    policy = Policy(
        settings.message_bytes,
        settings.grace_seconds,
        settings.late_seconds,
        settings.future_seconds,
        settings.on_time_seconds,
        max(1, int(settings.keep_hours * 60)),
    )
    source, sink = _ends(settings)
    # loaded as the service's middleware is; called with a message instead of an app
    steps: list[Any] = [load_middleware(name) for name in settings.steps]
    return Consumer(
        source,
        sink,
        state_path(settings),
        policy,
        records=Records(settings.ring_dir),
        steps=steps,
        batch_messages=settings.batch_messages,
        keep_hours=settings.keep_hours,
    )


def _ends(settings: StreamSettings) -> tuple[Source, Sink]:
    folder = FolderSink(settings.state_dir / "service", settings.letters_bytes)
    if settings.folder is not None:
        return FileSource(settings.folder.expanduser(), settings.message_bytes), folder
    try:
        from service.stream.kafka import KafkaSink, KafkaSource
    except ImportError as error:
        raise SettingsError("Kafka's library is not installed; pip install 'inferdeck[stream]'") from error

    topic = settings.topic
    letters = f"{topic}.dead" if settings.letters_topic is None else settings.letters_topic
    windows = f"{topic}.windows" if settings.windows_topic is None else settings.windows_topic
    source = KafkaSource(settings.brokers, topic, settings.group, settings.partitions or None)
    return source, KafkaSink(settings.brokers, letters, windows, settings.name, folder)


def web(consumer: Consumer) -> Starlette:
    """Return the app that answers /healthz/ready, /metrics and /api/windows."""

    async def ready(_request: Request) -> Response:
        problem = consumer.view.problem
        return JSONResponse({"ready": not problem, "problem": problem}, 503 if problem else 200)

    async def metrics(_request: Request) -> Response:
        return Response(render(consumer.view, dict(consumer.errors)), headers={"content-type": CONTENT_TYPE_LATEST})

    async def windows(_request: Request) -> Response:
        view = consumer.view
        return JSONResponse(
            {
                "windows": [window.to_json() for window in view.windows[-_MOST_WINDOWS:]],
                "counts": view.totals.counts,
                "waiting_messages": view.waiting,
                "lag_seconds": view.lag_seconds,
                "problem": view.problem,
            }
        )

    return Starlette(
        routes=[Route("/healthz/ready", ready), Route("/metrics", metrics), Route("/api/windows", windows)]
    )


def main(overrides: Mapping[str, Any] | None = None) -> int:
    """Run until SIGTERM or SIGINT.

    Args:
        overrides: Settings by field name that win over the environment, such as the console's options.

    Returns:
        0 after a clean stop, 2 when it could not start, with one line on stderr.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        _serve(StreamSettings(**(overrides or {})))
    except ValidationError as error:
        first = error.errors()[0]
        place = f"INFERDECK_STREAM_{str(first['loc'][0]).upper()}: " if first["loc"] else ""
        _log.error("cannot start: %s%s", place, first["msg"].removeprefix("Value error, "))
        return 2
    except (SettingsError, SourceFailed, StateFailed, OSError) as error:
        _log.error("cannot start: %s", _mend(error))
        return 2
    return 0


def _mend(error: Exception) -> str:
    if isinstance(error, StateFailed) and error.reason == "taken":
        return "another process has the state; stop it, or set INFERDECK_STATE_DIR to a folder of its own"
    return str(error)


def _serve(settings: StreamSettings) -> None:
    # The port first: when it is taken nothing was changed.
    try:
        bound = bind(settings.host, settings.port)
    except OSError as error:
        raise SettingsError(
            f"cannot bind {settings.host}:{settings.port} ({error.strerror or error}); set INFERDECK_STREAM_PORT"
        ) from error
    consumer = build(settings)
    server = AdminServer(web(consumer), bound)
    _stop_by_signals(consumer)
    server.start()
    _log.info("metrics on http://%s:%d/metrics", settings.host, server.port)
    try:
        consumer.run()
    finally:
        server.stop()


def _stop_by_signals(consumer: Consumer, numbers: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
    for number in numbers:
        signal.signal(number, lambda *_: consumer.stop())
