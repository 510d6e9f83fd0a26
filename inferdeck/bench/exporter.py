"""Our exporter as a process of its own, reading one ring folder; the bench's and the real one are the same program."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inferdeck.bench.children import Child, log_tail, spawn
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get

__all__ = ["free_port", "run_exporter"]

START_SECONDS = 30.0
# at 100% a busy second brings about 80,000 spans, and the sender shares its core with the load generator; the default
# queue is sized for a share
QUEUE_SPANS = 1_000_000


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def run_exporter(name: str, rows: Path, folder: Path, otlp_url: str | None, share: float) -> Iterator[Child]:
    """Run the exporter while the body runs; it is ready when the body starts.

    Args:
        name: For messages and the log's file name.
        rows: Ring folder.
        folder: For its log and state.
        otlp_url: Where it posts spans; None for nowhere.
        share: Share of requests that it keeps as spans.

    Raises:
        CannotRun: If it does not get ready.
    """
    port = free_port()
    environment = {
        "INFERDECK_RING_DIR": str(rows),
        "INFERDECK_STATE_DIR": str(folder / f"{name}-state"),
        "INFERDECK_EXPORTER_PORT": str(port),
        "INFERDECK_EXPORTER_KEEP_SHARE": str(share),
        "INFERDECK_EXPORTER_OTLP_QUEUE_SPANS": str(QUEUE_SPANS),
        # a share of 100% is to be sent whole
        "INFERDECK_EXPORTER_KEEP_PER_SECOND": "0",
        **({"INFERDECK_EXPORTER_OTLP_ENDPOINT": otlp_url} if otlp_url else {}),
    }
    with spawn(name, ["-m", "exporters"], folder, environment) as child:
        child.port = port
        deadline = time.monotonic() + START_SECONDS
        while not _answers(child):
            child.alive_or_raise()
            if time.monotonic() > deadline:
                raise CannotRun(f"{name} did not get ready: {log_tail(child.log)}", f"see {child.log}")
            time.sleep(0.1)
        yield child


def _answers(child: Child) -> bool:
    try:
        return get(f"{child.url}/healthz", 2.0)[0] == 200
    except Unreachable:
        return False
