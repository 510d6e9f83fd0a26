"""The exporter without its web page: looks at the rows on a clock of its own, and keeps what it counted.

Nothing here runs in, or waits for, the service: it reads files. A look, a scrape and a write of the state exclude each
other by one lock, which is never held while something is sent or answered.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from prometheus_client import Metric as Family

from exporters.archive.archiver import Archiver
from exporters.collector import Exemplars, Snapshot, families
from exporters.disk import write_error_reason
from exporters.drift.watch import DriftWatch
from exporters.follow import Follower
from exporters.gauges import service_gauges
from exporters.keep import KeepBudget
from exporters.lone_folder import SeveralFoldersError, lone_ring_dir, lone_rings_parent
from exporters.otlp_target import HTTP, open_transport
from exporters.sender import Sender
from exporters.serving import CannotStartError
from exporters.settings import ExporterSettings
from exporters.span_tap import Mark, SpanTap
from exporters.state import State, StateUnreadableError, load_state, save_state
from exporters.surroundings import Surroundings
from exporters.taps import Taps
from probes.private_file import leftovers

__all__ = ["Exporter", "pause_seconds", "version"]

STATE_NAME: Final = "exporter.state"
LOCK_NAME: Final = "exporter.lock"
_MOST_TICKS_TO_CATCH_UP: Final = 1000
# A ring that fills quickly is read again before it has gone this part of a lap; the rest is for a stalled exporter.
_LAPS_BETWEEN_TICKS: Final = 0.25
_RETRY_SECONDS: Final = 1.0
_LAPS_BETWEEN_SAVES: Final = 0.25
_SHORTEST_PAUSE_SECONDS: Final = 0.05

_log = logging.getLogger(__name__)


def version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("inferdeck")
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


class Exporter:
    """Follower, sender, state and clock together."""

    def __init__(
        self,
        settings: ExporterSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        find_ring_dir: Callable[[], Path | None] = lone_ring_dir,
    ) -> None:
        """Take the state folder and load what an earlier run counted.

        Args:
            settings: The settings.
            clock: Monotonic seconds.
            find_ring_dir: Returns the folder to follow when the settings name none, or None while there is none.

        Raises:
            CannotStartError: If the state folder cannot be used, another exporter uses it, or it is not clear which
                folder of ring files is meant.
        """
        self.settings = settings
        self._find_ring_dir = find_ring_dir
        try:
            ring_dir = settings.ring_dir or find_ring_dir()
        except SeveralFoldersError as error:
            raise CannotStartError(str(error)) from error
        # No ring file lies in the parent: until there is a folder below it, there is nothing to see.
        self.ring_dir = ring_dir or lone_rings_parent()
        self._searching = ring_dir is None
        self._several = False
        self._clock = clock
        self._lock = threading.Lock()
        self._halt = threading.Event()
        # Held for the process's life; the kernel gives it free however the process ends.
        self._lock_fd = _take_folder(settings.state_dir)
        self._state_path = settings.state_dir / STATE_NAME
        self.state_note = ""
        state = self._load()
        self.state = state or State()
        self.sender = self._make_sender()
        folder = settings.archive_dir
        self.archiver = Archiver(self.ring_dir, folder, settings.archive_limits()) if folder else None
        self.drift = DriftWatch(settings, clock)
        spans = [_tap(self.sender, settings)] if self.sender else []
        self.follower = Follower(
            self.ring_dir,
            self.state,
            without_state=state is None,
            tap=Taps([*spans, *self.drift.taps]),
            last_flight_files=settings.last_flight_files,
            last_flight_bytes=settings.last_flight_bytes,
            holds_back=self.archiver.holds_back if self.archiver else None,
        )
        self._exemplars = Exemplars()
        self._surroundings = Surroundings(settings)
        self._ticked_at = self._saved_at = float("-inf")
        self._tick_seconds = 0.0
        self._pause_seconds = settings.tick_seconds
        self._laps_unsaved = 0.0
        self._own_cpu_seen = 0.0
        self._write_failed = False
        self._thread = threading.Thread(target=self._run, name="exporter-tick", daemon=True)

    @property
    def state_saved(self) -> bool:
        """Whether the last write of the state succeeded."""
        return not self._write_failed

    def start(self) -> None:
        """Catch up with all rows, then look again and again from a thread.

        Catching up first matters: a scrape that saw the totals of the last saved state, before the rows that came after
        it are counted again, would show counters that fell.
        """
        if self._searching:
            _log.warning(
                "waiting: no service has recorded below %s yet, and INFERDECK_RING_DIR is unset", self.ring_dir
            )
        elif not self.ring_dir.is_dir():
            _log.warning("waiting for %s: no service has recorded there yet", self.ring_dir)
        if self.archiver:
            # Before the follower removes anything: what the last run left unsealed may be in files of dead workers.
            self.archiver.look()
            self.archiver.start()
        for _ in range(_MOST_TICKS_TO_CATCH_UP):
            self.tick()
            if not any(one.unread for one in self.follower.followed.values()):
                break
        if self.sender:
            self.sender.start()
        self._surroundings.start()
        self._thread.start()

    def tick(self) -> None:
        """Look at the rows once, and save the state when it is time."""
        with self._lock:
            self._tick_locked()

    def collect(self) -> list[Family]:
        """Return all families, fresh."""
        with self._lock:
            self._tick_locked()
            gauges = service_gauges(
                self.follower.followed.values(), len(self.follower.unreadable), time.time_ns()
            ) | self._surroundings.gauges(self.ring_dir, self._worker_pids())
            gauges["telemetry_exporter_tick_seconds"] = {(): self._tick_seconds}
            gauges["telemetry_spans_queued"] = {(): float(self.sender.queued if self.sender else 0)}
            gauges["telemetry_spans_waiting_seconds"] = {(): self.sender.waiting_seconds if self.sender else 0.0}
            gauges |= self.archiver.gauges() if self.archiver else {}
            gauges |= self.drift.gauges()
            return families(Snapshot(self.state.totals, gauges, self._exemplars))

    def health(self) -> dict[str, object]:
        """Return how the exporter is doing, for /healthz."""
        age = self._clock() - self._ticked_at
        otlp = "off" if self.sender is None else "on" if self.sender.alive else "stopped"
        looking = age < max(10.0, 10 * self.settings.tick_seconds)
        return {
            # Without its thread no span is sent any more, which only a restart mends.
            "status": "ok" if looking and otlp != "stopped" else "stuck",
            "version": version(),
            "last_tick_age_s": round(age, 3),
            "ring_dir": str(self.ring_dir),
            "ring_dir_exists": not self._searching and self.ring_dir.is_dir(),
            "rings": len(self.follower.followed),
            "unreadable": len(self.follower.unreadable),
            "rows_read": self.state.totals.value("telemetry_rows_read_total"),
            "state": self.state_note,
            "otlp": otlp,
            "archive": self.archiver.note if self.archiver else "off",
            "drift": self.drift.note,
            **self._surroundings.health(),
        }

    def stop(self) -> None:
        """Count what is there, send what can be sent soon, save the state to the disk, give the folder free."""
        self._halt.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)
        self._surroundings.stop()
        self.tick()
        # Before the state is saved: what could not be delivered is one of the totals.
        if self.sender:
            self.sender.stop()
        if self.archiver:
            self.archiver.stop()
        with self._lock:
            self._gather()
            self._save(flush=True)
            self.follower.close()
        os.close(self._lock_fd)

    def _worker_pids(self) -> set[int]:
        """Return the pids of the service's live workers, to tell its memory on a GPU from that of others."""
        return {one.ring.header.pid for one in self.follower.followed.values() if one.alive}

    def _run(self) -> None:
        """Tick until stopped; what one tick raises costs that tick."""
        while not self._halt.wait(self._pause_seconds):
            try:
                self.tick()
            except Exception:  # noqa: BLE001 - see below; /healthz turns to stuck meanwhile
                # An exporter that stops counting silently is worse than one that says the same each second.
                _log.exception("a look at the rows failed; trying again")

    def _tick_locked(self) -> None:
        """Do one look; the caller holds the lock."""
        began = self._clock()
        since = began - self._ticked_at
        if self._searching:
            self._search()
        self.follower.tick()
        self._pause_seconds = pause_seconds(self.follower.laps_read, since, self.settings.tick_seconds)
        self._gather()
        self.drift.look(self.ring_dir)
        # Added up like everything else, so that the total goes on over restarts.
        cpu = time.process_time()
        steps = round((cpu - self._own_cpu_seen) * 1e9)
        self.state.totals.add("telemetry_exporter_cpu_seconds_total", (), steps)
        self._own_cpu_seen = cpu
        self._ticked_at = self._clock()
        self._tick_seconds = self._ticked_at - began
        self._laps_unsaved += self.follower.laps_read
        # After a kill, rows are read again from where the state says: they must still be in their rings.
        longest = self.settings.state_seconds
        # The alert on a full disk counts the tries that fail: one a second (alerts/catalogue/disk_full.yaml).
        old = self._ticked_at - self._saved_at >= (min(longest, _RETRY_SECONDS) if self._write_failed else longest)
        if old or self._laps_unsaved >= _LAPS_BETWEEN_SAVES:
            self._save()

    def _search(self) -> None:
        """Follow the first folder that a service records in; when there are two at once, say so and wait on."""
        try:
            found = self._find_ring_dir()
        except SeveralFoldersError as error:
            if not self._several:
                _log.warning("waiting: %s", error)
            self._several = True
            return
        if found is None:
            return
        _log.info("rows from %s", found)
        self._searching = False
        self.ring_dir = self.follower.ring_dir = found
        if self.archiver:
            self.archiver.ring_dir = found

    def _gather(self) -> None:
        """Take over what archiver and sender counted, and what was delivered."""
        if self.archiver:
            self.state.totals.merge(self.archiver.take_counts())
        if self.sender:
            self.state.totals.merge(self.sender.take_counts())
            for mark in self.sender.take_delivered():
                if isinstance(mark, Mark):
                    self._exemplars.add(mark.bucket, mark.seconds, mark.trace_id, mark.unix_seconds)

    def _load(self) -> State | None:
        """Return the saved state; None, with the reason kept, when there is none that can be used."""
        # The folder is ours alone by now: what a killed exporter left half-written is nobody's.
        for path in leftovers(self._state_path):
            path.unlink(missing_ok=True)
        try:
            state = load_state(self._state_path)
        except StateUnreadableError as error:
            self.state_note = f"unreadable, counting from now on: {error}"
            _log.warning("state %s", self.state_note)
            return None
        self.state_note = "resumed" if state else "none found, counting from now on"
        return state

    def _save(self, *, flush: bool = False) -> None:
        """Write the state; a failure is counted, said once, and tried again."""
        self._saved_at, self._laps_unsaved = self._clock(), 0.0
        try:
            save_state(self._state_path, self.state, flush=flush)
        except OSError as error:
            self.state.totals.add("telemetry_state_write_errors_total", (write_error_reason(error),), 1)
            if not self._write_failed:
                _log.warning("state not written (%s: %s); a restart now would lose totals", self._state_path, error)
            # Said once, not twice a second; the figure goes on counting.
            self._write_failed = True
        else:
            self._write_failed = False

    def _make_sender(self) -> Sender | None:
        """Return the sender, or None when no target is set."""
        settings = self.settings
        if settings.otlp_endpoint is None:
            return None
        try:
            transport = open_transport(
                settings.otlp_protocol,
                settings.otlp_endpoint,
                headers=settings.otlp_headers.get_secret_value() if settings.otlp_headers else "",
                timeout_seconds=settings.otlp_timeout_seconds,
                compress=settings.otlp_gzip,
            )
        except ValueError as error:
            raise CannotStartError(str(error)) from error
        return Sender(
            transport,
            version=version(),
            queue_spans=settings.otlp_queue_spans,
            batch_spans=settings.otlp_batch_spans,
            deadline_seconds=settings.otlp_deadline_seconds,
            compress=settings.otlp_gzip and settings.otlp_protocol == HTTP,
        )


def _tap(sender: Sender, settings: ExporterSettings) -> SpanTap:
    """Return what chooses requests for the sender."""
    return SpanTap(sender, settings.keep_rules(), version(), KeepBudget(settings.keep_per_second))


def pause_seconds(laps: float, since_seconds: float, longest: float) -> float:
    """Return how long to wait until the next look, so that no ring goes much of a lap meanwhile.

    Args:
        laps: How much of a ring the last look read, at most; 1 is a whole lap.
        since_seconds: Time between that look and the one before.
        longest: What the settings say.
    """
    if laps <= 0:
        return longest
    return min(longest, max(_SHORTEST_PAUSE_SECONDS, since_seconds * _LAPS_BETWEEN_TICKS / laps))


def _take_folder(state_dir: Path) -> int:
    """Make the state folder if needed and lock it for this process; the descriptor holds the lock.

    Raises:
        CannotStartError: If it cannot be used, or another exporter holds it.
    """
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(state_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotStartError(
            f"state folder {state_dir} cannot be used ({error.strerror}): set INFERDECK_STATE_DIR to a writable folder"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise CannotStartError(
            f"another exporter uses {state_dir}: stop it, or set INFERDECK_STATE_DIR to another folder"
        ) from error
    return fd
