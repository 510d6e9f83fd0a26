"""What the workers' processes run out of, by name."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["PROCESS"]

PROCESS: Final = (
    Metric(
        "runtime_file_descriptors_refused_total",
        "counter",
        "looks",
        "Looks, about one a second, at which a worker had no file descriptor left, summed over workers.",
        source="status page",
    ),
)
