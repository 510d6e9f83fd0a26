"""`python -m service`: settings, ports, then uvicorn."""

from __future__ import annotations

import errno
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from service.admin import AdminServer, AdminView, admin_app, bind
from service.identity import commit, version
from service.lifecycle import State
from service.plugins import load_middleware
from service.service_metrics import Snapshot
from service.settings import ENV_PREFIX, Settings, SettingsError, load_settings, unknown_variables

__all__ = ["main"]


# A dictionary, because workers start from it as well.
_LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}


class _CannotRunError(Exception):
    """One line on why the service does not start."""


def _take(host: str, port: int, setting: str, *, shared: bool = False) -> socket.socket:
    try:
        return bind(host, port, shared=shared)
    except OSError as error:
        told = error.strerror or str(error)
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            mend = f"set {ENV_PREFIX}{setting.replace('PORT', 'HOST')} to an address of this machine"
        else:
            mend = f"set {ENV_PREFIX}{setting} or stop what uses it"
        raise _CannotRunError(f"cannot bind {host}:{port} ({told}); {mend}") from error


@contextmanager
def _starting(settings: Settings, bound: socket.socket) -> Iterator[None]:
    """Say on the admin port that the service is starting while the body runs: a heavy import is late, not dead."""
    seen = Snapshot(version(), commit(), "", settings.fingerprint, "starting", {})
    view = AdminView(lambda: State("starting"), lambda: 0.0, lambda: seen, settings.live_tick_limit_seconds)
    server = AdminServer(admin_app(view), bound)
    server.start()
    try:
        yield
    finally:
        server.stop()


def _configure(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        "service.app:create_app",
        factory=True,
        workers=settings.workers,
        loop="uvloop",
        # A name, since workers get the configuration pickled.
        http="service.protocol:BoundedHeadProtocol",
        ws="none",
        lifespan="on",
        log_config=_LOGGING | {"loggers": {"service": {"level": settings.log_level.upper()}}},
        log_level=settings.log_level,
        # Paths and client addresses of every request are the recorder's business, and the log's cost is high.
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        backlog=2048,
    )


def main() -> int:
    """Run the service until it is told to stop.

    Returns:
        0 after a clean stop, 2 when it could not start, with one line on stderr.
    """
    try:
        settings = load_settings()
        for name in unknown_variables():
            sys.stderr.write(f"service: warning: {name} is no setting and is ignored\n")
        taken = _take(settings.host, settings.port, "PORT")
        # Only tried here: the workers bind it themselves, after they have started.
        admin = _take(settings.admin_host, settings.admin_port, "ADMIN_PORT")
        with _starting(settings, admin) if settings.middleware else closing(admin):
            for name in settings.middleware:
                # Workers load it again; a name that cannot be loaded shall stop the start, not every worker in turn.
                load_middleware(name)
    except (SettingsError, _CannotRunError) as error:
        sys.stderr.write(f"service: {error}\n")
        return 2
    config = _configure(settings)
    if settings.workers > 1:
        taken.set_inheritable(True)
        Multiprocess(config, sockets=[taken]).run()
        return 0
    # uvicorn stops cleanly and then raises the signal again; a clean stop is no death by signal.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    server.run(sockets=[taken])
    return 0 if server.started else 2


if __name__ == "__main__":
    sys.exit(main())
