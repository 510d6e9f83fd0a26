"""What a source of kernel times gives: one window of runs, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Absent", "KernelSource", "Window"]


@dataclass(frozen=True)
class Absent:
    """There are no times, which is not a time of 0.

    Attributes:
        state: One of `names_kernels.SOURCE_STATES`, never "ok".
        detail: One line for people.
    """

    state: str
    detail: str = ""


@dataclass(frozen=True)
class Window:
    """The times of some runs in a row.

    Attributes:
        seconds: Kernel -> its time in each run.
        shape: Shape of the input, "32x256".
        environment: What the times depend on, by name: versions of runtime, driver, CUDA.
        resolution_seconds: Smallest difference that the source can tell.
    """

    seconds: Mapping[str, tuple[float, ...]]
    shape: str
    environment: Mapping[str, str]
    resolution_seconds: float


class KernelSource(Protocol):
    """Measures one window when asked; never on a request, never in the event loop."""

    @property
    def name(self) -> str:
        """One of `names_kernels.SOURCES`."""

    def measure(self) -> Window | Absent:
        """Return a window; never raises for what the measured thing lacks."""
