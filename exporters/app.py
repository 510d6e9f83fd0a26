"""The exporter as a process: `python -m exporters`, `inferdeck export`."""

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
from pydantic_settings import SettingsError

from exporters.exporter import CannotStartError, Exporter
from exporters.protocol import MOST_CONNECTIONS, BoundedHeadProtocol
from exporters.settings import ExporterSettings
from exporters.web import make_app

__all__ = ["main", "serve"]

_log = logging.getLogger("exporters")


def main(overrides: Mapping[str, Any] | None = None) -> int:
    """Run the exporter until SIGTERM or SIGINT.

    Args:
        overrides: Settings by field name that win over the environment, such as the console's options.

    Returns:
        Exit status: 0 stopped, 2 could not start (one line on stderr says why, and the mend).
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        settings = ExporterSettings(**(overrides or {}))
        serve(settings)
    except ValidationError as error:
        # One line, one mend: the others come up at the next try.
        first = error.errors()[0]
        # The value itself is not shown: it may be a secret.
        _log.error("cannot start: %s: %s", _variable(first["loc"]), first["msg"].removeprefix("Value error, "))
        return 2
    except SettingsError as error:
        # A value that should be JSON and is none never gets to be validated.
        _log.error("cannot start: INFERDECK_EXPORTER_*: %s", error)
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
    shared = {"ring_dir", "state_dir"}
    return f"INFERDECK_{name.upper()}" if name in shared else f"INFERDECK_EXPORTER_{name.upper()}"


def serve(settings: ExporterSettings) -> None:
    """Serve until stopped by a signal, then save the state.

    Raises:
        CannotStartError: If the port is taken or the state folder cannot be used.
    """
    # The port first: when it is taken, nothing was changed, and the state folder stays free for the one that has it.
    stopping = threading.Event()
    with _stopped_by_signals(stopping), contextlib.closing(_listen(settings.host, settings.port)) as listener:
        exporter = Exporter(settings)
        try:
            exporter.start()
            host, port = listener.getsockname()[:2]
            _log.info("metrics on http://%s:%d/metrics, rows from %s", host, port, settings.ring_dir)
            config = uvicorn.Config(
                make_app(exporter),
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
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            exporter.stop()
    _log.info("stopped, state %s", "saved" if exporter.state_saved else "not saved")


@contextlib.contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
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


def _listen(host: str, port: int) -> socket.socket:
    """Return a bound socket.

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
            f"port {port} on {host} cannot be had ({error.strerror}): stop what uses it, or set INFERDECK_EXPORTER_PORT"
        ) from error
    return listener
