"""What the figures were measured on: processor, kernel, versions, and the cores that the bench may use."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from inferdeck.errors import CannotRun
from probes.core import CORE_NAME

__all__ = ["describe", "pinned_to", "two_cores", "versions"]

PACKAGES = (
    "fastapi",
    "starlette",
    "uvicorn",
    "uvloop",
    "httptools",
    "pydantic",
    "numpy",
    "prometheus-client",
    "prometheus-fastapi-instrumentator",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation-fastapi",
    "opentelemetry-exporter-otlp-proto-http",
    "protobuf",
    "onnxruntime",
)


def versions() -> dict[str, str]:
    """Return the versions of what was measured; what is not installed is left out."""
    found = {"python": platform.python_version(), "recorder core": CORE_NAME}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def describe(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, str | int]:
    """Return processor, cores and kernel; nothing that names the machine."""
    model = "unknown"
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return {"cpu": model, "cores": os.cpu_count() or 0, "kernel": platform.release(), "system": platform.system()}


def two_cores() -> tuple[int, int]:
    """Return a core for the servers and one for everything else.

    Raises:
        CannotRun: If this process may use fewer than two, or the system is not Linux.
    """
    if not hasattr(os, "sched_getaffinity") or not Path("/proc/self/schedstat").is_file():
        raise CannotRun("the bench counts the scheduler's nanoseconds, which only Linux has", "run it on Linux")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise CannotRun("the bench needs two cores, one for the server alone", "give the process a second core")
    return cores[0], cores[1]


@contextmanager
def pinned_to(core: int) -> Iterator[None]:
    """Keep this thread, and the processes that it starts, on one core while the body runs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
