"""The exporter's drift: made by its settings, looked at on its clock, told to the services by the control page."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from exporters.drift.judge import Rules
from exporters.drift.monitor import DriftMonitor
from exporters.follow import Tap
from exporters.gauges import Gauges
from exporters.settings import ExporterSettings
from probes.control import write_control

__all__ = ["REFERENCE_NAME", "DriftWatch"]

REFERENCE_NAME: Final = "reference.npz"
# What services are told holds over so many looks that do not come, as after a kill of the exporter.
_HOLDS_LOOKS: Final = 6.0

_log = logging.getLogger(__name__)


class DriftWatch:
    """A monitor that may be switched off.

    Args:
        settings: The exporter's.
        clock: Monotonic seconds.
    """

    def __init__(self, settings: ExporterSettings, clock: Callable[[], float]) -> None:
        self._holds_seconds = _HOLDS_LOOKS * settings.drift_seconds
        self._failed = False
        self._model_dir = settings.model_dir
        self.monitor: DriftMonitor | None = None
        if settings.drift:
            self.monitor = DriftMonitor(
                settings.model_dir / REFERENCE_NAME,
                window=settings.drift_window,
                rules=Rules(effect=settings.drift_score, rows=settings.drift_rows),
                seconds=settings.drift_seconds,
                clock=clock,
            )

    @property
    def note(self) -> str:
        """How it is doing, in words."""
        return self.monitor.note if self.monitor else "off"

    @property
    def taps(self) -> list[Tap]:
        """What wants the follower's rows."""
        return [self.monitor] if self.monitor else []

    def gauges(self) -> Gauges:
        """Return the metrics; none when it is switched off."""
        return self.monitor.gauges() if self.monitor else {}

    def look(self, ring_dir: Path) -> None:
        """Look when it is time, and tell the services; a folder that cannot be written costs them only that.

        Args:
            ring_dir: Where the services record.
        """
        if self.monitor is None:
            return
        # What the running service was trained on lies beside its rows; the folder of models may hold a later training.
        told = ring_dir / REFERENCE_NAME
        self.monitor.path = told if told.is_file() else self._model_dir / REFERENCE_NAME
        if not self.monitor.look() or not ring_dir.is_dir():
            return
        found = self.monitor.control()
        if found is None:
            return
        try:
            write_control(ring_dir, {"drift": found}, self._holds_seconds)
        except OSError as error:
            if not self._failed:
                _log.warning("services are not told of drift: %s (%s)", ring_dir, error.strerror)
            self._failed = True
        else:
            self._failed = False
