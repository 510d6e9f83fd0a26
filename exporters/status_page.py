"""A worker's status page into cumulative totals and gauges: pure, and forgiving about what is missing.

Source   the JSON object that a worker writes about once a second (docs/architecture.md, section 2).
Error    a histogram whose bounds differ from ours is counted at the next higher bound of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from exporters.labels import CROWDED_REASONS
from exporters.names import METRICS
from exporters.totals import Totals

__all__ = ["cumulative", "number"]

_BILLION: Final = 1_000_000_000


def cumulative(status: Mapping[str, Any]) -> Totals:
    """Return what the worker counted since its start; a missing or malformed part is left out."""
    totals = Totals()
    _histogram(totals, "runtime_event_loop_lag_seconds", (), status.get("loop_lag"))
    gc = status.get("gc")
    for generation, entry in gc.items() if isinstance(gc, Mapping) else ():
        if generation in ("0", "1", "2") and isinstance(entry, Mapping):
            _histogram(totals, "runtime_gc_pause_seconds", (generation,), entry.get("pause"))
    for name, key in (
        ("runtime_event_loop_blocked_seconds_total", "loop_blocked_s"),
        ("runtime_process_cpu_seconds_total", "cpu_s"),
        ("runtime_loop_cpu_wait_seconds_total", "loop_wait_s"),
    ):
        if (seconds := number(status.get(key))) is not None:
            totals.add(name, (), round(seconds * _BILLION))
    limit = status.get("cpu_limit")
    for name, key in (("runtime_cpu_periods_total", "periods"), ("runtime_cpu_throttled_periods_total", "throttled")):
        if isinstance(limit, Mapping) and (count := number(limit.get(key))) is not None:
            totals.add(name, (), int(count))
    for name, key in (
        ("telemetry_open_slots_overflow_total", "open_overflow"),
        ("runtime_file_descriptors_refused_total", "fd_refused"),
    ):
        if (count := number(status.get(key))) is not None:
            totals.add(name, (), int(count))
    for name, key in (
        ("telemetry_requests_unrecorded_total", "loss"),
        ("telemetry_probe_failures_total", "probe_failures"),
    ):
        found = status.get(key)
        for label, count in found.items() if isinstance(found, Mapping) else ():
            if (amount := number(count)) is not None:
                # The recorder counts both in one place; to refuse a label is its duty, and no failure of a sensor.
                refused = name == "telemetry_probe_failures_total" and label in CROWDED_REASONS
                totals.add("telemetry_labels_refused_total" if refused else name, (str(label),), int(amount))
    return totals


def number(value: object) -> float | None:
    """Return *value* when it is a finite number of 0 or more, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Beyond 2**53 a float is no count any more, and a huge JSON integer does not even fit one.
    return float(value) if 0 <= value < 2**63 else None


def _histogram(totals: Totals, name: str, labels: tuple[str, ...], entry: object) -> None:
    """Add a histogram of the page, re-binned to the bounds of *name*."""
    if not isinstance(entry, Mapping):
        return
    bounds, counts, seconds = entry.get("bounds"), entry.get("counts"), number(entry.get("sum_s"))
    if not isinstance(bounds, list) or not isinstance(counts, list) or seconds is None:
        return
    if len(counts) not in (len(bounds), len(bounds) + 1) or any(number(x) is None for x in (*bounds, *counts)):
        return
    ours = np.rint(np.array(METRICS[name].buckets) * _BILLION)
    places = np.searchsorted(ours, np.rint(np.array(bounds) * _BILLION), side="left").tolist()
    binned = [0] * (len(ours) + 1)
    # The page's last count, when it has one more than bounds, lies above all of its bounds.
    for place, count in zip([*places, len(ours)], counts, strict=False):
        binned[place] += int(count)
    totals.observe(name, labels, binned, round(seconds * _BILLION))
