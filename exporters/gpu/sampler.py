"""Looks at the cards from a thread of its own, so that a driver that hangs holds up no scrape."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from exporters.gpu.reading import Card, Snapshot

__all__ = ["GpuSampler"]

# After so many looks that should have been there, the last one is no longer the present.
_LOOKS_MISSED: Final = 3.0
# A machine without a driver seldom gets one: asking costs a failed dlopen, and that is not wanted every few seconds.
_RARE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class GpuSampler:
    """The latest snapshot, and how old it is."""

    def __init__(
        self,
        read: Callable[[], Snapshot],
        interval_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            read: Looks at the cards once.
            interval_seconds: Pause between two looks.
            clock: Monotonic seconds.
        """
        self._read = read
        self._interval = interval_seconds
        self._clock = clock
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None
        # One tuple, replaced as a whole: who reads it needs no lock.
        self._latest: tuple[float, Snapshot] = (clock(), Snapshot("starting"))
        self._pause = interval_seconds

    def start(self) -> None:
        """Look again and again until stopped."""
        self._thread = threading.Thread(target=self._run, name="gpu-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop; a look that hangs in the driver is left to the end of the process."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def look(self) -> None:
        """Look once; what goes wrong there costs this look, and is said once."""
        before = self._latest[1].state
        try:
            found = self._read()
        except Exception:  # noqa: BLE001 - see below
            # Nothing of NVML raises here (nvml.py): this is a fault of ours, and the exporter has other work to do.
            if before != "error":
                _log.exception("the GPUs could not be looked at")
            found = Snapshot("error")
        self._pause = _RARE_SECONDS if found.state == "library_missing" and not found.cards else self._interval
        self._latest = (self._clock(), found)
        if found.state != before:
            _log.info("NVML: %s, %d cards", found.state, len(found.cards))

    def latest(self) -> Snapshot:
        """Return the latest snapshot; one that is too old to be the present only says that it is silent."""
        at, snapshot = self._latest
        if self._clock() - at <= _LOOKS_MISSED * self._pause + 1.0:
            return snapshot
        return Snapshot("silent", "", tuple(Card(card.label, card.name, "silent") for card in snapshot.cards))

    def _run(self) -> None:
        self.look()
        while not self._halt.wait(self._pause):
            self.look()
