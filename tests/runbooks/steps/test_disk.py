"""A full disk is told by what is left and what could not be written, and apart from a folder that refuses writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runbooks import signals
from runbooks.engine import triage
from runbooks.evidence import Evidence, Series
from runbooks.sources import Sources
from runbooks.steps import disk

T0 = 1_780_000_000.0
TIMES = np.arange(T0 - 120.0, T0 + 60.1, 5.0)


class Fake:
    """A source over prepared evidence."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def collect(self, *_: Any) -> Any:
        """Return it."""
        return self.found

    def alert_span(self, *_: Any) -> None:
        """No alert is known."""
        return


def ask(rows: Any, series: dict[str, tuple[Series, ...]]) -> dict[str, Any]:
    """Triage at the end of the incident."""
    sources = Sources(Fake(series), Fake(rows) if rows is not None else None)
    return triage(sources, at=T0 + 60.0, clock=lambda: T0 + 61.0)


def level(before: float, during: float, **labels: str) -> Series:
    """Return a gauge with one level before the onset and another after it."""
    return Series(labels, TIMES, np.where(TIMES < T0, before, during))


def disks(**room: tuple[float, float]) -> dict[str, tuple[Series, ...]]:
    """Return the gauges of free space: by folder, bytes and ratio during the incident; plenty before."""
    return {
        signals.DISK_BYTES: tuple(level(5e9, free, folder=folder) for folder, (free, _) in room.items()),
        signals.DISK_RATIO: tuple(level(0.6, share, folder=folder) for folder, (_, share) in room.items()),
    }


def answering(up: float = 1.0) -> dict[str, tuple[Series, ...]]:
    """Return targets that answer, the service perhaps not."""
    return {
        signals.UP: (level(1.0, up, job=signals.SERVICE_JOB), level(1.0, 1.0, job=signals.EXPORTER_JOB)),
    }


def world(growing: Callable[..., Series], reason: str, per_second: float, **room: tuple[float, float]) -> Any:
    """Return what Prometheus has: writes of the state that fail for a reason, and the room left."""
    failed = tuple(
        growing({"reason": word}, 0.0, per_second if word == reason else 0.0) for word in ("disk_full", "unwritable")
    )
    return answering() | disks(**room) | {signals.STATE_ERRORS: failed}


@pytest.mark.parametrize("per_second", [0.1, 1.0])
def test_a_full_state_folder_is_named_with_and_without_rows(
    requests: Callable[..., Any], growing: Callable[..., Any], per_second: float
) -> None:
    """Few or many failed writes; the layer is the host, whatever it is that writes there."""
    series = world(growing, "disk_full", per_second, state=(0.0, 0.0), rows=(9e9, 0.9))

    for rows in (requests(), None):
        found = ask(rows, series)
        assert ("disk_full", "host") == (found["verdict"]["slug"], found["verdict"]["layer"]), found["candidates"]


def test_a_quota_is_named_by_the_failed_writes_alone(requests: Callable[..., Any], growing: Callable[..., Any]) -> None:
    """The disk has room, this user has none left."""
    found = ask(requests(), world(growing, "disk_full", 1.0, state=(9e9, 0.5)))

    assert "disk_full" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize("rows", [(1e6, 0.01), (4e6, 1.0)], ids=["full", "too small, and empty since nothing fits"])
def test_a_worker_that_starts_without_room_for_its_rows_is_named(
    growing: Callable[..., Any], rows: tuple[float, float]
) -> None:
    """Its requests leave no row: only the admin port tells."""
    lost = (growing({"reason": "disk_full", "job": "service"}, 0.0, 20.0),)
    found = ask(None, answering() | disks(state=(9e9, 0.9), rows=rows) | {signals.UNRECORDED: lost})

    assert "disk_full" == found["verdict"]["slug"], found["candidates"]


def test_a_disk_that_is_about_to_be_full_is_named_before_anything_is_lost(
    requests: Callable[..., Any], growing: Callable[..., Any]
) -> None:
    """No write has failed yet."""
    found = ask(requests(), world(growing, "disk_full", 0.0, state=(1e6, 0.01)))

    assert "disk_full" == found["verdict"]["slug"], found["candidates"]


@pytest.mark.parametrize(
    ("reason", "per_second", "room"),
    [
        ("disk_full", 0.0, (1.6e6, 0.2)),
        ("disk_full", 0.0, (5e9, 0.02)),
        ("unwritable", 1.0, (5e9, 0.5)),
    ],
    ids=["at 80%", "a big disk at 98%", "a read-only folder"],
)
def test_what_looks_alike_is_not_named(
    requests: Callable[..., Any],
    growing: Callable[..., Any],
    reason: str,
    per_second: float,
    room: tuple[float, float],
) -> None:
    """The healthy twin, a big disk, and a folder that refuses writes for another reason."""
    found = ask(requests(), world(growing, reason, per_second, state=room))

    assert "disk_full" != found["verdict"]["slug"], found["candidates"]


def test_a_dead_service_beside_a_full_disk_is_named_first(growing: Callable[..., Any]) -> None:
    """What pages goes first; the full disk stays next to it."""
    series = world(growing, "disk_full", 1.0, state=(0.0, 0.0)) | answering(0.0)
    found = ask(None, series)

    assert "service_down" == found["verdict"]["slug"], found["candidates"]


def test_the_fullest_disk_counts_and_a_gauge_of_long_ago_does_not(evidence: Callable[..., Evidence]) -> None:
    """Each folder may lie on a disk of its own."""
    found = disk.room(evidence(None, disks(state=(64 << 20, 0.001), rows=(32 << 20, 0.001))))
    assert 0.5 == found.value
    assert found.detail.startswith("rows")

    old = {
        name: tuple(Series(one.labels, one.times[:30], one.values[:30]) for one in series)
        for name, series in disks(state=(0.0, 0.0)).items()
    }
    assert disk.room(evidence(None, old)).value is None


def test_without_prometheus_nothing_is_seen(evidence: Callable[..., Evidence], requests: Callable[..., Any]) -> None:
    """Rows tell only that requests are fine."""
    blind = evidence(requests(), None)

    assert [None] * 4 == [
        step(blind).value for step in (disk.room, disk.failed_writes, disk.unrecorded, disk.for_lack_of_room)
    ]
    assert 0.0 == disk.hurt_share(blind).value


def test_requests_that_fail_are_counted_from_either_source(
    evidence: Callable[..., Evidence], requests: Callable[..., Any], growing: Callable[..., Any]
) -> None:
    """Every second request is answered with an error."""

    def fail(one: dict[str, Any], rng: Any) -> None:
        one["outcome"] = "error" if rng.random() < 0.5 else "ok"

    counted = {
        signals.REQUESTS: (growing({"outcome": "ok"}, 20.0, 10.0), growing({"outcome": "error"}, 0.0, 10.0)),
    }
    from_rows, from_counters = (
        disk.hurt_share(one) for one in (evidence(requests(fail), None), evidence(None, counted))
    )

    assert ("ring", "prometheus") == (from_rows.source, from_counters.source)
    for found in (from_rows, from_counters):
        assert isinstance(found.value, float)
        assert 0.4 < found.value < 0.6
