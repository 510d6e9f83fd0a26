"""Whether a device has the memory for a batch: 120% of what batches of its size were seen to take (row B5).

Measures  bytes that batches took beyond what was held while none ran, per cell (row of the batch x characters of its
          longest text), by bucket of cells (powers of two).
Source    the device's readings on their own clock (service/memory_device.py): the most cells that were in flight since
          the last reading, against what is held at this one.
Error     whatever else grows on the device meanwhile counts as the batches'; growth under the reading's noise is left
          out. The largest of the last 64 measurements of a bucket counts, so that the estimate is rather too high; one
          that is not seen again for 10 minutes is forgotten, or what is refused would never be measured anew.
Absent    no device, no reading, an old one, or nothing measured yet: every batch is sent.
Memory    64 numbers for each of 24 buckets; kept on disk, where there is a state folder, for the next start.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from probes.private_file import write_private
from service.memory_device import Absent, DeviceReading

__all__ = ["MARGIN", "Absent", "GateState", "MemoryGate"]

_log = logging.getLogger("service.memory")

MARGIN: Final = 1.2
"""Share of the estimate that must be free; requirements B5."""
_MEASURED: Final = 64
_BUCKETS: Final = 24
_LIFETIME_SECONDS: Final = 600.0
_KEEP_SECONDS: Final = 5.0


@dataclass(frozen=True)
class GateState:
    """What metrics show.

    Attributes:
        free_bytes: What the device has free, None where nobody knows.
        bytes_per_cell: The largest measured, None before the first.
        absent: Why nothing is refused, empty where something may be.
    """

    free_bytes: int | None
    bytes_per_cell: float | None
    absent: str


class MemoryGate:
    """Lets a batch pass if its device has room for it; safe from several threads.

    Args:
        latest: Returns the device's last reading; must not wait for one. None: there is no device to look at.
        path: File in which estimates outlive the process.
        key: Of what the estimates are: model and device. Those of another are forgotten.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        latest: Callable[[], DeviceReading | Absent] | None = None,
        path: Path | None = None,
        key: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.measures = latest is not None
        """False where there is nothing to look at, so that nobody looks for every batch."""
        self._latest = latest or (lambda: Absent("the model has no device of its own"))
        self._path, self._key, self._clock = path, key, clock
        self._lock = threading.Lock()
        # Of each bucket bytes per cell, with when that was measured.
        self._measured: dict[int, deque[tuple[float, float]]] = {}
        # When a batch of the bucket was last seen to take no more than noise.
        self._fitted: dict[int, float] = {}
        self._in_flight = self._most = self._unseen = 0
        self._idle_bytes: int | None = None
        self._changed, self._kept_at = False, -1e9
        if path is not None:
            now = clock()
            self._measured = {
                bucket: deque([(now, value)], maxlen=_MEASURED) for bucket, value in _read(path, key).items()
            }

    def estimate(self, cells: int) -> int | Absent:
        """Return the bytes that a batch of so many cells is expected to take."""
        with self._lock:
            return self._estimate(cells)

    def allows(self, cells: int) -> bool:
        """Return whether a batch of so many cells may be sent now; those that no reading shows yet count as sent."""
        reading = self._latest()
        if isinstance(reading, Absent):
            return True
        with self._lock:
            expected, unseen = self._estimate(cells), self._estimate(self._unseen)
        if isinstance(expected, Absent):
            return True
        taken = 0 if isinstance(unseen, Absent) else unseen
        return reading.free_bytes - taken >= MARGIN * expected

    def begin(self, cells: int) -> None:
        """Take note that a batch starts."""
        with self._lock:
            self._in_flight += cells
            self._unseen += cells
            self._most = max(self._most, self._in_flight)

    def end(self, cells: int) -> None:
        """Take note that it has ended."""
        with self._lock:
            self._in_flight -= cells
            self._unseen = max(0, self._unseen - cells)

    def observe(self, reading: DeviceReading | Absent) -> None:
        """Learn from a reading; called by the watch, in its thread."""
        with self._lock:
            most, self._most, self._unseen = self._most, self._in_flight, 0
            if isinstance(reading, Absent):
                return
            if most == 0:
                self._idle_bytes = reading.held_bytes
            elif self._idle_bytes is not None:
                # Those that run now took it; or, if an allocator keeps what it had, those since the last reading.
                self._learn(self._in_flight or most, reading.held_bytes - self._idle_bytes, reading.noise_bytes)
            content = self._to_keep()
        if content is not None and self._path is not None:
            try:
                write_private(self._path, content)
            except OSError as error:
                _log.warning("estimates of memory are not kept: %s", error.strerror or error)

    def idle(self) -> bool:
        """Return whether no batch ran since the last reading."""
        return self._in_flight == 0 and self._most == 0

    def state(self) -> GateState:
        """Return what metrics show."""
        reading = self._latest()
        with self._lock:
            self._forget()
            known = max((_largest(found) for found in self._measured.values()), default=None)
        if isinstance(reading, Absent):
            return GateState(None, known, reading.reason)
        return GateState(reading.free_bytes, known, "" if known is not None else "no batch was measured yet")

    def _forget(self) -> None:
        since = self._clock() - _LIFETIME_SECONDS
        for bucket, found in list(self._measured.items()):
            while found and found[0][0] < since:
                found.popleft()
            if not found:
                del self._measured[bucket]
        self._fitted = {bucket: at for bucket, at in self._fitted.items() if at >= since}

    def _estimate(self, cells: int) -> int | Absent:
        self._forget()
        if not self._measured:
            return Absent("no batch was measured yet")
        if cells <= 0:
            return 0
        # Without its own bucket the next larger one, whose shares are finer; else the largest below. One that fitted
        # into the noise counts: from what a small batch seemed to take nothing follows for large ones then.
        bucket = _bucket(cells)
        known = {*self._measured, *self._fitted}
        larger = [one for one in known if one >= bucket]
        chosen = min(larger) if larger else max(known)
        return round(_largest(self._measured[chosen]) * cells) if chosen in self._measured else 0

    def _learn(self, cells: int, taken: int, noise: int) -> None:
        if taken < noise:
            if self._in_flight:
                self._fitted[_bucket(cells)] = self._clock()
            return
        found = self._measured.setdefault(_bucket(cells), deque(maxlen=_MEASURED))
        found.append((self._clock(), taken / cells))
        self._changed = True

    def _to_keep(self) -> bytes | None:
        now = self._clock()
        if self._path is None or not self._changed or now - self._kept_at < _KEEP_SECONDS:
            return None
        self._changed, self._kept_at = False, now
        known = {str(bucket): _largest(found) for bucket, found in self._measured.items()}
        return json.dumps({"key": self._key, "bytes_per_cell": known}).encode()


def _bucket(cells: int) -> int:
    return min(_BUCKETS, max(1, cells).bit_length())


def _largest(found: Iterable[tuple[float, float]]) -> float:
    return max(value for _at, value in found)


def _read(path: Path, key: str) -> dict[int, float]:
    """Return what an earlier process measured; nothing if it is another model's, or no such file."""
    try:
        content = path.read_bytes()[:65_536]
        found = json.loads(content)
        if found["key"] != key:
            return {}
        values: Mapping[str, float] = found["bytes_per_cell"]
        pairs = [(int(bucket), float(value)) for bucket, value in values.items()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {bucket: value for bucket, value in pairs if 1 <= bucket <= _BUCKETS and math.isfinite(value) and value > 0}
