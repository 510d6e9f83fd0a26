"""What the exporter and the triage service share as processes: settings' errors, port, signals, and who may ask."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

import uvicorn
from pydantic import ValidationError
from pydantic_settings import SettingsError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from exporters.protocol import MOST_CONNECTIONS, BoundedHeadProtocol

__all__ = [
    "CannotStartError",
    "is_loopback",
    "listen",
    "only_known_hosts",
    "run_until_stopped",
    "serve_app",
    "stopped_by_signals",
]

_log = logging.getLogger(__name__)

# Fields that all parts of a stack have in common; their variables bear no part's name.
_SHARED: Final = frozenset({"ring_dir", "state_dir", "prometheus_url"})


class CannotStartError(Exception):
    """The process cannot start; the message is one line with the mend."""


def run_until_stopped(serve: Callable[[], None], prefix: str) -> int:
    """Run a process's work, and say in one line on stderr what keeps it from starting.

    Args:
        serve: Reads the settings and serves until a signal.
        prefix: Of the variables of its own settings.

    Returns:
        Exit status: 0 stopped, 2 could not start.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        serve()
    except ValidationError as error:
        # One line, one mend: the others come up at the next try.
        first = error.errors()[0]
        # The value itself is not shown: it may be a secret.
        what = first["msg"].removeprefix("Value error, ")
        _log.error("cannot start: %s: %s", _variable(first["loc"], prefix), what)
        return 2
    except SettingsError as error:
        # A value that should be JSON and is none never gets to be validated.
        _log.error("cannot start: %s*: %s", prefix, error)
        return 2
    except CannotStartError as error:
        _log.error("cannot start: %s", error)
        return 2
    return 0


def _variable(place: Sequence[int | str], prefix: str) -> str:
    """Return the variable of the environment that sets the field at *place* of the settings."""
    name = ".".join(map(str, place))
    if not name.islower():
        return name or "settings"
    return f"{'INFERDECK_' if name in _SHARED else prefix}{name.upper()}"


@contextlib.contextmanager
def stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Take SIGTERM and SIGINT as a wish to stop.

    The web server has handlers of its own while it runs; once stopped it restores ours and raises the signal again,
    which without ours would kill the process before its state is saved.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(host: str, port: int, variable: str) -> socket.socket:
    """Return a bound socket.

    Args:
        host: Address.
        port: Port; 0 takes a free one.
        variable: What sets the port, for the error.

    Raises:
        CannotStartError: If the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A restart must not wait for connections of the last run to time out.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise CannotStartError(
            f"port {port} on {host} cannot be had ({error.strerror}): stop what uses it, or set {variable}"
        ) from error
    return listener


def serve_app(app: Starlette, listener: socket.socket, stopping: threading.Event) -> None:
    """Serve on a bound socket until a signal, with bounded heads and connections.

    Args:
        app: The application.
        listener: As `listen` returned it.
        stopping: Set when a signal came before the server could take it.
    """
    config = uvicorn.Config(
        app,
        http=BoundedHeadProtocol,
        ws="none",
        # Access logs would hold the session ids that people look up.
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=3,
        limit_concurrency=MOST_CONNECTIONS,
    )
    if not stopping.is_set():
        _QuietServer(config).run(sockets=[listener])


class _QuietServer(uvicorn.Server):
    """A server that sleeps until it is asked or told to stop, instead of looking ten times a second whether it is.

    On a machine where other work takes the caches, ten looks are 1.4 ms of CPU a second.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Refresh the Date header once a second until a signal comes."""
        self._leave = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # 0: the tick that refreshes the header. Asked at once, since the signal may have come before there was a loop.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leave.wait(), 1.0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at once."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave.set)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a port on *host*.

    Names other than localhost are not resolved: what they mean can change after the check.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def only_known_hosts(host: str) -> Middleware:
    """Return middleware that refuses requests to a loopback port under a foreign name.

    A web page in somebody's browser can reach 127.0.0.1 under a name of its own (DNS rebinding), and read or post there
    as if it were its own server. A port that is bound elsewhere has a token instead.

    Args:
        host: Address that the port is bound to.
    """
    hosts = ["127.0.0.1", "localhost", "[::1]", "::1", host] if is_loopback(host) else ["*"]
    return Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
