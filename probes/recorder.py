"""The flight recorder of one process: opens the ring after fork, keeps phases, beats, and tells its status.

Cost      begin and commit 4 to 5 us per request in a hot loop, 7 us inside an app, compiled 0.6 hot; the heartbeat
          about 2 ms per second.
Error     none is raised into a request: a request that cannot be recorded is served unrecorded and counted.
Absent    without a usable folder the rows go to an anonymous mapping; `Recorder.loss` and the status say why.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import MutableMapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import psutil

from probes.control import read_control
from probes.core import CORE_NAME
from probes.cpu_limits import CpuLimits
from probes.event_loop import EventLoopWatch
from probes.executor_wait import ExecutorWait
from probes.folder import FolderRefused
from probes.gc_pauses import GcPauses
from probes.heartbeat import Heartbeat
from probes.intake import Intake
from probes.layout import OPEN_SLOT_BYTES
from probes.open_slots import oldest_age_s
from probes.process_usage import ProcessUsage
from probes.record import Record
from probes.ringfile import open_anonymous, open_ring
from probes.settings import Identity, RecorderSettings
from probes.standing_tasks import StandingTasks
from probes.standstill import Standstill
from probes.writer import RingWriter

__all__ = ["Recorder"]

NOT_OF_THE_START: Final = frozenset({"ready", "stopped"})

log = logging.getLogger("probes")


class Recorder:
    """Records the requests of one service; made once, it opens a file of its own in every process that serves.

    Args:
        directory: The folder of the ring files.
        service: Name of the service.
        identity: Fingerprints of code, configuration and model.
        settings: Sizes and periods.
    """

    def __init__(
        self,
        directory: Path | str,
        service: str,
        identity: Identity | None = None,
        settings: RecorderSettings | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.service = service
        self.identity = identity or Identity()
        self.settings = settings or RecorderSettings()
        self.control: dict[str, Any] = {}
        self._failures: dict[str, int] = {}  # bounded: keys are words of our code and names of sensors
        self._unrecorded: dict[str, int] = {}  # as above
        self._lock = threading.Lock()
        self._intake: Intake | None = None
        self._heartbeat: Heartbeat | None = None
        self._loop_watch = EventLoopWatch(self.settings.tick_s, self.settings.blocked_s, self.settings.beat_s)
        self._gc = GcPauses()
        self._process = ProcessUsage()
        self._cpu_limits = CpuLimits()
        self._standstill = Standstill()
        self._tasks = StandingTasks()
        self._executor = ExecutorWait()
        self._phases = {"import": max(0.0, time.time() - psutil.Process().create_time())}
        self._phase = "starting"
        self._phase_since = time.monotonic()
        self._ready = False
        self._has_phases = False
        self._status_at = self._retry_at = 0.0
        _reopen_after_fork(self)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        service: str,
        identity: Identity | None = None,
        settings: RecorderSettings | None = None,
    ) -> Recorder:
        """Return a recorder that has its ring already; never raises for a folder that it cannot use.

        Args:
            directory: The folder of the ring files.
            service: Name of the service.
            identity: Fingerprints of code, configuration and model.
            settings: Sizes and periods.
        """
        recorder = cls(directory, service, identity, settings)
        recorder.start()
        return recorder

    @property
    def path(self) -> Path | None:
        """This process's ring file; None before it is opened or when there is none."""
        return self._intake.ring.path if self._intake else None

    @property
    def loss(self) -> str | None:
        """Why rows cannot be read, in a word; None while all is well."""
        return self._intake.ring.loss if self._intake else None

    # ---- requests

    def begin(self, scope: MutableMapping[str, Any]) -> tuple[Intake, Record] | None:
        """Begin the record of an HTTP request; None if that fails, which is counted.

        Args:
            scope: The ASGI scope.
        """
        try:
            intake = self._intake
            if intake is None:
                intake = self.start()
                self.serving()
            if self._loop_watch.loop is None:
                self._watch_loop()
            return intake, intake.begin(scope)
        except Exception:  # noqa: BLE001  telemetry never takes a request down
            self._unrecorded["begin"] = self._unrecorded.get("begin", 0) + 1
            return None

    def finish(
        self, begun: tuple[Intake, Record], scope: MutableMapping[str, Any], status: int, disconnected: bool
    ) -> None:
        """Commit the record of a request that has ended; a failure is counted.

        Args:
            begun: What `begin` returned.
            scope: The ASGI scope.
            status: HTTP status sent.
            disconnected: Whether the client went away first.
        """
        try:
            begun[0].finish(begun[1], scope, status, disconnected)
        except Exception:  # noqa: BLE001  telemetry never takes a request down
            self._unrecorded["commit"] = self._unrecorded.get("commit", 0) + 1

    def count(self, reason: str) -> None:
        """Count something that was refused or failed.

        Args:
            reason: A word from our code.
        """
        self._failures[reason] = self._failures.get(reason, 0) + 1

    # ---- life

    def start(self) -> Intake:
        """Open this process's ring, if it is not, and start its heartbeat; called by itself at the first request."""
        with self._lock:
            intake = self._intake
            if intake is None:
                intake = Intake(self._open())
                self._retry_at = time.monotonic() + self.settings.retry_s
                # A thread, because what it has to tell most urgently is that the loop stands still.
                self._heartbeat = Heartbeat(self.settings.beat_s, self._beat)
                if self.settings.sensors:
                    self._gc.start()
                self._intake = intake
                self._write_status()
                self._heartbeat.start()
        self._watch_loop()
        return intake

    def close(self) -> None:
        """Stop the heartbeat, write the last status and close the ring; its file stays for its readers."""
        with self._lock:
            heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            heartbeat.stop()
        with self._lock:
            intake, self._intake = self._intake, None
            self._loop_watch.stop()
            self._gc.stop()
            if intake is not None:
                self._lap("stopped")
                self._ready = False
                self._guard("status", lambda: self._write_status(intake))
                intake.ring.close()

    def phase(self, name: str) -> None:
        """Say which phase of its start the service is in; the time of each is on the status page.

        Args:
            name: A word, such as ``loading_model``.
        """
        self._has_phases = True
        self._lap(name)
        self._ready = False
        self._guard("status", self._write_status)

    def ready(self) -> None:
        """Say that the service is ready."""
        self._lap("ready")
        self._ready = True
        self._guard("status", self._write_status)

    def serving(self) -> None:
        """Be ready if the app has no phases of its own; called when its start-up is complete or a request comes."""
        if not self._has_phases and not self._ready:
            self.ready()

    def identify(self, **fingerprints: str) -> None:
        """Add fingerprints that became known after the start, such as the model's.

        Args:
            **fingerprints: build, config, model, driver.
        """
        self.identity = replace(self.identity, **fingerprints)
        if self._intake is not None:
            known = {name: value[:200] for name, value in asdict(self.identity).items()}
            if not self._intake.writer.publish({"identity": known}):
                self.count("journal_full")

    def status(self) -> dict[str, Any]:
        """Return what the status page says; docs/architecture.md section 2 has its keys."""
        return self._status(self._intake)

    # ---- inside

    def _open(self) -> Any:
        try:
            return open_ring(self.directory, self.service, self.identity, self.settings, self.count)
        except FolderRefused as error:
            log.warning("requests are served but cannot be looked up (%s): %s", error.reason, error)
            return open_anonymous(self.service, self.identity, self.settings, self.count, error.reason)

    def _watch_loop(self) -> None:
        if self.settings.sensors:
            try:
                self._loop_watch.start(asyncio.get_running_loop())
            except RuntimeError:
                return  # not on an event loop: the first request will be

    def _lap(self, name: str) -> None:
        now = time.monotonic()
        known = self._phase in self._phases or len(self._phases) < 32
        if known and self._phase not in NOT_OF_THE_START:
            self._phases[self._phase] = self._phases.get(self._phase, 0.0) + now - self._phase_since
        self._phase, self._phase_since = name[:64], now

    def _beat(self) -> None:
        """Run on the heartbeat thread, about 40 times a second."""
        self._guard("event_loop", self._loop_watch.check)
        now = time.monotonic()
        if now < self._status_at:
            return
        self._status_at = now + self.settings.status_s
        intake = self._intake
        if intake is not None:
            self._guard("clock", intake.anchor)
            self._guard("control", self._read_control)
            self._guard("status", self._write_status)
            if intake.ring.loss and now >= self._retry_at:
                self._guard("retry", self._retry)

    def _guard(self, name: str, action: Any) -> None:
        try:
            action()
        except Exception:
            if name not in self._failures:
                log.exception("probe %s failed; it is counted from now on", name)
            self.count(name)

    def _read_control(self) -> None:
        self.control = read_control(self.directory)

    def _retry(self) -> None:
        """Try again to have a file; requests in flight end in the ring in which they began."""
        self._retry_at = time.monotonic() + self.settings.retry_s
        try:
            ring = open_ring(self.directory, self.service, self.identity, self.settings, self.count)
        except FolderRefused:
            return
        old, self._intake = self._intake, Intake(ring)
        if old is not None and old.ring.loss:
            self._unrecorded[old.ring.loss] = self._unrecorded.get(old.ring.loss, 0) + old.writer.head

    def _write_status(self, intake: Intake | None = None) -> None:
        intake = intake or self._intake
        if intake is not None:
            intake.writer.write_status(self._status(intake))

    def _status(self, intake: Intake | None) -> dict[str, Any]:
        loss = dict(self._unrecorded)
        if intake is not None and intake.ring.loss:
            loss[intake.ring.loss] = loss.get(intake.ring.loss, 0) + intake.writer.head
        phases = dict(self._phases)
        if self._phase not in NOT_OF_THE_START:
            phases[self._phase] = phases.get(self._phase, 0.0) + time.monotonic() - self._phase_since
        status: dict[str, Any] = {
            "written_unix_ns": time.time_ns(),
            "core": CORE_NAME,
            "phase": self._phase,
            "phases": {name: round(seconds, 6) for name, seconds in phases.items()},
            "ready": self._ready,
            "rows": intake.writer.head if intake else 0,
            "loss": loss,
            "open_overflow": intake.writer.open_overflow if intake else 0,
        }
        if self.settings.sensors:
            for name, sensor in (
                ("event_loop", self._loop_watch),
                ("gc", self._gc),
                ("process", self._process),
                ("cpu_limits", self._cpu_limits),
            ):
                self._guard(name, lambda sensor=sensor: status.update(sensor.reading()))
            if intake is not None:
                loop = self._loop_watch.loop
                self._guard("executor", lambda: status.update(self._executor.reading(loop)))
                writer = intake.writer
                self._guard("standstill", lambda: status.update(self._standstill.reading(_oldest_s(writer))))
                self._guard("standing_tasks", lambda: status.update(self._tasks.reading(loop, _oldest_s(writer))))
        status["probe_failures"] = dict(self._failures)
        return status

    def _after_fork(self) -> None:
        """Let go, in a child, of what belongs to the parent; the child opens its own at its first request."""
        intake, self._intake = self._intake, None
        self._lock = threading.Lock()
        self._heartbeat = None
        self._loop_watch = EventLoopWatch(self.settings.tick_s, self.settings.blocked_s, self.settings.beat_s)
        self._gc.stop()
        self._gc = GcPauses()
        self._process = ProcessUsage()
        self._cpu_limits = CpuLimits()
        self._standstill = Standstill()
        self._tasks = StandingTasks()
        self._executor = ExecutorWait()
        if intake is not None:
            # The lock lives until every copy of the descriptor is closed: a child that kept it would make a dead parent
            # look alive.
            intake.ring.abandon()


def _oldest_s(writer: RingWriter) -> float | None:
    begin = writer.layout.open
    # A copy: a view would pin the mapping.
    table = writer.buffer[begin : begin + writer.layout.open_slots * OPEN_SLOT_BYTES]
    return oldest_age_s(table, time.time_ns())


def _reopen_after_fork(recorder: Recorder) -> None:
    # Hooks cannot be taken back: a strong reference would keep every recorder for ever.
    reference = weakref.ref(recorder)

    def after_fork() -> None:
        alive = reference()
        if alive is not None:
            alive._after_fork()

    os.register_at_fork(after_in_child=after_fork)
