"""The admin port: health and metrics from a thread and an event loop of its own.

It answers while the service's loop is blocked, which is when it is needed. Several workers share the port by
SO_REUSEPORT: each connection reaches one of them, and the answer says which by its pid.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from service.health import liveness, readiness
from service.lifecycle import State
from service.protocol import BoundedHeadProtocol
from service.service_metrics import Snapshot, render

__all__ = ["AdminServer", "AdminView", "admin_app", "bind"]

_log = logging.getLogger("service.admin")


@dataclass(frozen=True)
class AdminView:
    """What the admin port looks at; every callable is safe from another thread.

    Attributes:
        state: Where the service stands.
        tick_age_seconds: Seconds since the service's loop last ran.
        snapshot: What the metrics show.
        live_limit_seconds: Age of the tick over which the service counts as dead.
    """

    state: Callable[[], State]
    tick_age_seconds: Callable[[], float]
    snapshot: Callable[[], Snapshot]
    live_limit_seconds: float


def admin_app(view: AdminView) -> Starlette:
    """Return the app that answers /healthz/live, /healthz/ready and /metrics."""

    # Coroutines without an await: a thread pool here would be one more thing that can be exhausted.
    async def live(_request: Request) -> Response:
        status, document = liveness(view.tick_age_seconds(), view.live_limit_seconds, os.getpid())
        return JSONResponse(document, status)

    async def ready(_request: Request) -> Response:
        status, document = readiness(view.state(), os.getpid())
        return JSONResponse(document, status)

    async def metrics(_request: Request) -> Response:
        return Response(render(view.snapshot()), headers={"content-type": CONTENT_TYPE_LATEST})

    return Starlette(routes=[Route("/healthz/live", live), Route("/healthz/ready", ready), Route("/metrics", metrics)])


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a bound socket.

    Args:
        host: Address to bind.
        port: Port; 0 takes a free one.
        shared: Let other processes of this user bind the same port (SO_REUSEPORT).

    Raises:
        OSError: If it cannot be bound.
    """
    family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


class AdminServer:
    """Serves the admin app in a daemon thread.

    Args:
        app: The admin app.
        bound: The socket to serve on; closed by `stop`.
    """

    def __init__(self, app: Starlette, bound: socket.socket) -> None:
        self.port: int = bound.getsockname()[1]
        self._socket = bound
        config = uvicorn.Config(
            app,
            http=BoundedHeadProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=30,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="admin", daemon=True)

    def start(self, wait_seconds: float = 5.0) -> None:
        """Start serving, and wait until it does or the time is over."""
        self._thread.start()
        until = time.monotonic() + wait_seconds
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)

    def stop(self, wait_seconds: float = 2.0) -> None:
        """Stop serving."""
        # Idle keep-alive connections of a scraper would otherwise be waited for.
        self._server.force_exit = True
        self._server.should_exit = True
        self._thread.join(wait_seconds)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except (Exception, SystemExit):  # noqa: BLE001 - telemetry never takes the service down
            _log.exception("the admin port stopped; requests go on")
