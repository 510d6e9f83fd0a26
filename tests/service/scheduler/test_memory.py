"""Room on a device."""

from __future__ import annotations

from service.scheduler.memory import Absent, MemoryGate


class Device:
    """Memory that a test sets."""

    def __init__(self, free: int | Absent) -> None:
        self.free = free

    def free_memory(self) -> int | Absent:
        """Return what was set."""
        return self.free


def test_batch_needs_a_fifth_more_than_its_like_took() -> None:
    """1,000 cells that took 10,000 bytes let a batch of 100 cells pass from 1,200 bytes on."""
    device = Device(50_000)
    gate = MemoryGate(device)
    gate.learn(1000, 50_000, 40_000)
    assert gate.estimate(100) == 1000
    device.free = 1199
    assert not gate.allows(100)
    device.free = 1200
    assert gate.allows(100)


def test_largest_of_the_measured_batches_counts() -> None:
    """A batch that fitted into memory that was held already does not make the estimate small."""
    gate = MemoryGate(Device(0))
    for after in (900, 500, 1000, 1100):
        gate.learn(10, 1000, after)
    assert gate.estimate(10) == 500


def test_everything_passes_before_the_first_measurement() -> None:
    """Nothing is known, so it is sent and measured."""
    gate = MemoryGate(Device(0))
    assert isinstance(gate.estimate(10), Absent)
    assert gate.allows(10)


def test_without_a_device_everything_passes_and_that_is_said() -> None:
    """A model on the CPU has no device memory; nothing is learnt from figures that are none."""
    gate = MemoryGate()
    free = gate.free()
    gate.learn(10, free, free)
    assert isinstance(free, Absent)
    assert "no device" in free.reason
    assert gate.allows(10**12)


def test_device_that_cannot_be_asked_does_not_stop_the_service() -> None:
    """A reading that is missing later is no reason to refuse."""
    device = Device(1000)
    gate = MemoryGate(device)
    gate.learn(10, 1000, 0)
    device.free = Absent("driver lost")
    assert gate.allows(10**6)
