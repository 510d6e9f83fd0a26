"""The real service as a process on free ports, with or without its recorder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inferdeck.bench.children import Child, log_tail, spawn
from inferdeck.bench.exporter import free_port
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get

__all__ = ["model_or_raise", "run_service"]

READY_SECONDS = 60.0
# the error of ready_s: half of it on average, against seconds that are measured
POLL_SECONDS = 0.01


def model_or_raise(folder: Path) -> Path:
    """Return *folder* when it holds a model that the service would load.

    Raises:
        CannotRun: If there is none, or it is damaged.
    """
    from service.artifacts import ArtifactsError, load_artifacts

    try:
        load_artifacts(folder)
    except ArtifactsError as error:
        raise CannotRun(str(error)) from error  # it names the mend itself
    return folder


@contextmanager
def run_service(
    name: str, folder: Path, model: Path, *, recorder: bool, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Child, float]]:
    """Run `python -m service` while the body runs.

    Args:
        name: For messages and the log's file name; its rows are in `<folder>/<name>`.
        folder: For logs and rows.
        model: The model's folder, absolute.
        recorder: Whether rows are written.
        settings: More of its environment.

    Yields:
        The service, and the seconds from its start until it was ready.

    Raises:
        CannotRun: If it ends, or is not ready within a minute.
    """
    rows = folder / name
    rows.mkdir(mode=0o700, exist_ok=True)
    port, admin = free_port(), free_port()
    environment = {
        "INFERDECK_SERVICE_PORT": str(port),
        "INFERDECK_SERVICE_ADMIN_PORT": str(admin),
        "INFERDECK_SERVICE_MODEL_DIR": str(model),
        "INFERDECK_SERVICE_RECORDER": str(recorder).lower(),
        # A promise (202) is no answer: what is measured is the wanted model.
        "INFERDECK_SERVICE_DEGRADED_ANSWERS": '{"queue_full": "off"}',
        "INFERDECK_SERVICE_LOG_LEVEL": "warning",
        "INFERDECK_RING_DIR": str(rows),
        "INFERDECK_STATE_DIR": str(folder / f"{name}-state"),
        **(settings or {}),
    }
    started = time.monotonic()
    with spawn(name, ["-m", "service"], folder, environment) as child:
        child.port = port
        while not _ready(f"http://127.0.0.1:{admin}/healthz/ready"):
            child.alive_or_raise()
            if time.monotonic() - started > READY_SECONDS:
                raise CannotRun(f"{name} was not ready in time: {log_tail(child.log)}", f"see {child.log}")
            time.sleep(POLL_SECONDS)
        yield child, time.monotonic() - started


def _ready(url: str) -> bool:
    try:
        return get(url, 2.0)[0] == 200
    except Unreachable:
        return False
