"""The exporter as a process: `python -m exporters`, `inferdeck export`."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from typing import Any

from exporters.exporter import Exporter
from exporters.serving import listen, run_until_stopped, serve_app, stopped_by_signals
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
    return run_until_stopped(lambda: serve(ExporterSettings(**(overrides or {}))), "INFERDECK_EXPORTER_")


def serve(settings: ExporterSettings) -> None:
    """Serve until stopped by a signal, then save the state.

    Raises:
        CannotStartError: If the port is taken or the state folder cannot be used.
    """
    # The port first: when it is taken, nothing was changed, and the state folder stays free for the one that has it.
    stopping = threading.Event()
    with (
        stopped_by_signals(stopping),
        contextlib.closing(listen(settings.host, settings.port, "INFERDECK_EXPORTER_PORT")) as listener,
    ):
        exporter = Exporter(settings)
        try:
            exporter.start()
            host, port = listener.getsockname()[:2]
            _log.info("metrics on http://%s:%d/metrics, rows from %s", host, port, exporter.ring_dir)
            serve_app(make_app(exporter), listener, stopping)
        finally:
            exporter.stop()
    _log.info("stopped, state %s", "saved" if exporter.state_saved else "not saved")
