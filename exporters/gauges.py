"""The present, in gauges: a pure function of what the follower saw and of the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from exporters.follow import Followed
from exporters.labels import OTHER, PHASE_LIMIT, WORKER_LIMIT
from exporters.status_page import number
from exporters.totals import Labels

__all__ = ["Gauges", "service_gauges"]

Gauges = dict[str, dict[Labels, float]]


def service_gauges(followed: Iterable[Followed], unreadable: int, now_unix_ns: int) -> Gauges:
    """Return the gauges of the service and its rings; one that nothing is known of is absent, never 0.

    Args:
        followed: The ring files.
        unreadable: How many more could not be read.
        now_unix_ns: Now, ns since 1970.
    """
    files = list(followed)
    live = [one for one in files if one.alive]
    gauges: Gauges = {
        "model_requests_in_flight": {(): float(sum(len(one.open_starts) for one in live))},
        "model_oldest_request_age_seconds": {(): _oldest_age(live, now_unix_ns)},
        "model_worker_up": _workers(files),
        "telemetry_ring_unread_rows": {(): float(sum(one.unread for one in files))},
        "telemetry_rings": {
            ("live",): float(len(live)),
            ("last_flight",): float(len(files) - len(live)),
            ("unreadable",): float(unreadable),
        },
    }
    # A dead worker's page is history: its memory is free again.
    statuses = [one.status for one in live if one.status]
    for name, key in (
        ("runtime_process_resident_memory_bytes", "rss_bytes"),
        ("runtime_threads", "threads"),
        ("runtime_open_file_descriptors", "fds"),
    ):
        values = [value for status in statuses if (value := number(status.get(key))) is not None]
        if values:
            gauges[name] = {(): sum(values)}
    if used := [share for status in statuses if (share := _descriptors_used(status)) is not None]:
        gauges["runtime_file_descriptors_used_ratio"] = {(): max(used)}
    if standing := _standing(statuses, "standing", ("lock", "call")):
        gauges["runtime_standing_threads"] = standing
    if tasks := _standing(statuses, "standing_tasks", ("lock", "await")):
        gauges["runtime_standing_tasks"] = tasks
    if waits := [wait for status in statuses if (wait := _executor_wait(status)) is not None]:
        gauges["runtime_executor_wait_seconds"] = {(): max(waits)}
    gauges["runtime_heartbeat_age_seconds"] = _heartbeats(statuses, now_unix_ns)
    gauges["runtime_start_phase_seconds"] = _phases(statuses)
    return gauges


def _oldest_age(live: Iterable[Followed], now_unix_ns: int) -> float:
    """Return the age of the oldest request in flight, in seconds."""
    # The wall clock may have been set back meanwhile: an age is never negative.
    starts = [int(one.open_starts.min()) for one in live if len(one.open_starts)]
    return max(0.0, (now_unix_ns - min(starts)) / 1e9) if starts else 0.0


def _workers(files: Iterable[Followed]) -> dict[Labels, float]:
    """Return which workers are up: 0 for one that died until its number is taken over, none for one that stopped.

    Otherwise a service that was scaled down, or stopped for good, would look broken for ever.
    """
    up: dict[Labels, float] = {}
    for one in files:
        if not one.alive and (one.status or {}).get("phase") == "stopped":
            continue
        worker = one.ring.header.worker
        # Numbers, not pids: a pid is new at each restart, and series of old ones would pile up.
        key = (str(worker) if worker < WORKER_LIMIT else OTHER,)
        up[key] = max(up.get(key, 0.0), float(one.alive))
    return up


def _descriptors_used(status: Mapping[str, Any]) -> float | None:
    """Return the share of its file descriptors that a worker uses."""
    used, limit = number(status.get("fds")), number(status.get("fd_limit"))
    return used / limit if used is not None and limit else None


def _executor_wait(status: Mapping[str, Any]) -> float | None:
    """Return how long a call waited for a thread of the worker's executor, if it has one."""
    told = status.get("executor")
    return number(told.get("wait_s")) if isinstance(told, Mapping) else None


def _standing(statuses: Iterable[Mapping[str, Any]], part: str, kinds: Sequence[str]) -> dict[Labels, float]:
    """Return how many threads or tasks stand still beside a request that does not end, summed over workers."""
    counts: dict[Labels, float] = {}
    for status in statuses:
        told = status.get(part)
        if not isinstance(told, Mapping):
            continue
        for waits in kinds:
            if (count := number(told.get(waits))) is not None:
                counts[(waits,)] = counts.get((waits,), 0.0) + count
    return counts


def _heartbeats(statuses: Iterable[Mapping[str, Any]], now_unix_ns: int) -> dict[Labels, float]:
    """Return the ages of the last signs of life, oldest over the workers."""
    ages: dict[Labels, float] = {}
    for status in statuses:
        written = number(status.get("written_unix_ns"))
        if written is None:
            continue
        # The thread that writes the page is the second heartbeat: the loop's age goes on growing while it is silent.
        silent = max(0.0, (now_unix_ns - written) / 1e9)
        ages[("thread",)] = max(ages.get(("thread",), 0.0), silent)
        if (tick := number(status.get("loop_tick_age_s"))) is not None:
            ages[("loop",)] = max(ages.get(("loop",), 0.0), tick + silent)
    return ages


def _phases(statuses: Iterable[Mapping[str, Any]]) -> dict[Labels, float]:
    """Return how long each phase of the start took, slowest over the workers; a bounded number of phases."""
    phases: dict[Labels, float] = {}
    for status in statuses:
        found = status.get("phases")
        for phase, seconds in found.items() if isinstance(found, Mapping) else ():
            value = number(seconds)
            if value is not None and ((phase,) in phases or len(phases) < PHASE_LIMIT):
                phases[(str(phase),)] = max(phases.get((str(phase),), 0.0), value)
    return phases
