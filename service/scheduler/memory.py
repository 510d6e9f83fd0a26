"""Whether a device has the memory for a batch: 120% of what batches of its size were seen to take (row B5).

Measures  bytes that batches took, per cell (row of the batch x characters of its longest text), free memory.
Source    what tells the free memory of the device; where none does (the CPU) that is said, and everything is sent.
Error     the largest of the last 64 batches that took some counts; before the first nothing is known, and it is sent.
Memory    64 numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["MARGIN", "NO_DEVICE", "Absent", "DeviceMemory", "MemoryGate", "NoDevice"]

MARGIN: Final = 1.2
"""Share of the estimate that must be free; requirements B5."""
_MEASURED: Final = 64


@dataclass(frozen=True)
class Absent:
    """There is no such figure.

    Attributes:
        reason: Why, in one sentence.
    """

    reason: str


class DeviceMemory(Protocol):
    """A device's memory."""

    def free_memory(self) -> int | Absent:
        """Return the free bytes, or why nobody knows; must not block."""


class NoDevice:
    """A model on the CPU: its memory is the host's, which is looked at when the model is loaded (row B11)."""

    def free_memory(self) -> int | Absent:
        """Return why there is no figure."""
        return Absent("the model has no device of its own; batches are always sent")


NO_DEVICE: Final[DeviceMemory] = NoDevice()


class MemoryGate:
    """Lets a batch pass if its device has room for it.

    Args:
        device: Tells the free memory.
    """

    def __init__(self, device: DeviceMemory = NO_DEVICE) -> None:
        self.measures = not isinstance(device, NoDevice)
        """False where there is nothing to look at, so that nobody looks for every batch."""
        self._device = device
        self._bytes_per_cell: deque[float] = deque(maxlen=_MEASURED)

    def estimate(self, cells: int) -> int | Absent:
        """Return the bytes that a batch of so many cells is expected to take."""
        if not self._bytes_per_cell:
            return Absent("no batch was measured yet")
        return round(max(self._bytes_per_cell) * cells)

    def allows(self, cells: int) -> bool:
        """Return whether a batch of so many cells may be sent now."""
        expected = self.estimate(cells)
        if isinstance(expected, Absent):
            return True
        free = self._device.free_memory()
        return isinstance(free, Absent) or free >= MARGIN * expected

    def free(self) -> int | Absent:
        """Return the free memory, to be looked at before and after a batch."""
        return self._device.free_memory()

    def learn(self, cells: int, before: int | Absent, after: int | Absent) -> None:
        """Take note of what a batch took; one that fitted into what earlier ones left allocated says nothing."""
        if isinstance(before, Absent) or isinstance(after, Absent) or cells <= 0 or after >= before:
            return
        self._bytes_per_cell.append((before - after) / cells)
