"""Room on a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.memory_device import Absent, DeviceReading
from service.scheduler.memory import MemoryGate

MIB = 1 << 20


class Device:
    """Readings that a test sets."""

    def __init__(self, free: int, held: int = 0) -> None:
        self.reading: DeviceReading | Absent = DeviceReading(free, held)

    def latest(self) -> DeviceReading | Absent:
        """Return what was set."""
        return self.reading


def run(gate: MemoryGate, cells: int, held: int) -> None:
    """Show the gate an idle device, then a batch that was running when *held* more bytes were."""
    gate.observe(DeviceReading(0, 0))
    gate.begin(cells)
    gate.observe(DeviceReading(0, held))
    gate.end(cells)
    gate.observe(DeviceReading(0, 0))


def test_batch_needs_a_fifth_more_than_its_like_took() -> None:
    """1,000 cells that took 10 MiB let a batch of as many pass from 12 MiB on."""
    device = Device(0)
    gate = MemoryGate(device.latest)
    run(gate, 1000, 10 * MIB)
    assert gate.estimate(1000) == 10 * MIB
    device.reading = DeviceReading(12 * MIB - 1, 0)
    assert not gate.allows(1000)
    device.reading = DeviceReading(12 * MIB, 0)
    assert gate.allows(1000)


def test_each_size_has_its_own_estimate_and_others_take_the_next_larger() -> None:
    """What small batches take for a cell, with all that is fixed, does not refuse large ones."""
    gate = MemoryGate(Device(0).latest)
    run(gate, 8, 8 * MIB)
    run(gate, 1000, 10 * MIB)
    assert gate.estimate(8) == 8 * MIB
    assert gate.estimate(1000) == 10 * MIB
    assert gate.estimate(200) == 2 * MIB
    assert gate.estimate(2000) == 20 * MIB


def test_largest_of_the_measured_batches_counts_and_noise_does_not() -> None:
    """A batch that fitted into memory that was held already does not make the estimate small."""
    gate = MemoryGate(Device(0).latest)
    for held in (10 * MIB, 50 * MIB, 0, MIB - 1):
        run(gate, 10, held)
    assert gate.estimate(10) == 50 * MIB
    gate = MemoryGate(Device(0).latest)
    run(gate, 10, MIB - 1)
    assert isinstance(gate.estimate(10), Absent)


def test_larger_batch_that_fitted_keeps_a_small_ones_noise_from_being_projected() -> None:
    """An interpreter that grew by 20 MiB while 8 cells ran says nothing of 1,000 that took nothing."""
    gate = MemoryGate(Device(0).latest)
    run(gate, 8, 20 * MIB)
    assert gate.estimate(1000) == 2500 * MIB
    run(gate, 1000, 0)
    assert gate.estimate(1000) == 0
    assert gate.estimate(2000) == 0
    assert gate.estimate(8) == 20 * MIB
    assert gate.idle()
    gate.begin(8)
    assert not gate.idle()


def test_batches_that_no_reading_shows_yet_count_as_sent() -> None:
    """Between two readings only as much is sent as fits together."""
    device = Device(0)
    gate = MemoryGate(device.latest)
    run(gate, 100, 10 * MIB)
    device.reading = DeviceReading(25 * MIB, 0)
    sent = 0
    while gate.allows(100) and sent < 10:
        gate.begin(100)
        sent += 1
    assert sent == 2
    gate.observe(DeviceReading(25 * MIB, 20 * MIB))
    assert gate.allows(100)


def test_estimate_that_is_not_seen_again_is_forgotten() -> None:
    """What is refused is not measured: without this an estimate that was once too high would stay for ever."""
    now = [0.0]
    gate = MemoryGate(Device(0).latest, clock=lambda: now[0])
    run(gate, 100, 10 * MIB)
    now[0] = 600.0
    run(gate, 8, 8 * MIB)
    assert gate.estimate(100) == 10 * MIB
    now[0] = 600.1
    assert gate.estimate(100) == 100 * MIB  # from the smaller one alone
    now[0] = 1200.1
    assert isinstance(gate.estimate(100), Absent)


@pytest.mark.parametrize("reading", [Absent("driver lost"), Absent("the last reading is older than 2 s")])
def test_missing_or_old_reading_refuses_nothing_and_says_so(reading: Absent) -> None:
    """What nobody knows is no reason to refuse."""
    device = Device(0)
    gate = MemoryGate(device.latest)
    run(gate, 10, 50 * MIB)
    device.reading = reading
    gate.observe(reading)
    assert gate.allows(10**6)
    assert gate.state().absent == reading.reason
    assert gate.state().free_bytes is None


def test_everything_passes_before_the_first_measurement_and_without_a_device() -> None:
    """Nothing is known, so it is sent and measured."""
    gate = MemoryGate(Device(0).latest)
    assert gate.allows(10)
    assert "no batch" in gate.state().absent
    assert not MemoryGate().measures
    assert MemoryGate().allows(10**12)


def test_estimates_outlive_the_process_for_the_same_model_and_device(tmp_path: Path) -> None:
    """The next start knows what the last one learnt; another model's figures are forgotten."""
    path = tmp_path / "memory.json"
    run(MemoryGate(Device(0).latest, path, "gpu a"), 100, 10 * MIB)
    assert path.stat().st_mode & 0o777 == 0o600
    assert MemoryGate(Device(0).latest, path, "gpu a").estimate(100) == 10 * MIB
    assert isinstance(MemoryGate(Device(0).latest, path, "gpu b").estimate(100), Absent)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{", '{"key": "a"}', '{"key": "a", "bytes_per_cell": 3}'),
        json.dumps({"key": "a", "bytes_per_cell": {"7": "x"}}),
        '{"key": "a", "bytes_per_cell": {"7": NaN, "8": -1, "9": Infinity, "99": 5}}',
    ],
)
def test_damaged_file_of_estimates_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    """A half-written or odd file refuses nothing."""
    path = tmp_path / "memory.json"
    path.write_text(content)
    assert isinstance(MemoryGate(Device(0).latest, path, "a").estimate(100), Absent)


def test_folder_that_cannot_be_written_costs_the_file_alone(tmp_path: Path, caplog: Any) -> None:
    """Estimates go on in memory."""
    gate = MemoryGate(Device(0).latest, tmp_path / "missing" / "memory.json", "a")
    run(gate, 100, 10 * MIB)
    assert gate.estimate(100) == 10 * MIB
    assert "not kept" in caplog.text
