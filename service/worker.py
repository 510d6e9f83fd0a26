"""What one worker process runs beside its requests: model, executor, loop tick, admin port."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from service.admin import AdminServer, AdminView, admin_app, bind
from service.backend import Backend, calls_of
from service.canary.versions import CanaryView
from service.executor import Executor
from service.identity import version
from service.lifecycle import Lifecycle, Phase, State
from service.loop_tick import LoopTick
from service.replay import Replay
from service.service_metrics import Degraded, Snapshot
from service.settings import Settings
from service.tokens import look

__all__ = ["Telemetry", "Worker"]

_log = logging.getLogger("service.worker")


class Telemetry(Protocol):
    """What the worker tells, and asks, its recorder."""

    def phase(self, phase: Phase) -> None:
        """Take note of where the service stands."""

    def model_loaded(self, version: str) -> None:
        """Take note of the model that answers from now on."""

    def loss(self) -> Mapping[str, int]:
        """Return what could not be recorded, by reason."""


class Worker:
    """Built with the app, started and stopped by its lifespan, that is after any fork; it runs once.

    Args:
        settings: The settings.
        load: Returns the loaded model, or raises; called in a thread.
        telemetry: The recorder, or what stands in for it.
        build: Commit of the build.
    """

    def __init__(self, settings: Settings, load: Callable[[], Backend], telemetry: Telemetry, build: str) -> None:
        self.settings = settings
        self.tick = LoopTick()
        self.executor = Executor(settings.model_threads)
        self.vip_executor = Executor(1, "inference-vip")
        self.lifecycle = Lifecycle(load, settings.model_retry_seconds, self._on_phase)
        self.replay = Replay(lambda: self.lifecycle.backend, settings.replay_seconds)
        self.admin: AdminServer | None = None
        self.canary: Callable[[], CanaryView] = CanaryView
        self._accepts = True
        self._changing = threading.Lock()
        self._telemetry = telemetry
        self._build = (version(), build)
        self.degraded: Callable[[object], Degraded] = lambda _backend: Degraded()
        """What stands in for the model; set by whoever puts the service together."""
        self.on_model: Callable[[], None] = lambda: None
        """Called when the model is there, likewise."""

    def snapshot(self) -> Snapshot:
        """Return what the admin port's metrics show."""
        backend = self.lifecycle.backend
        model = backend.version if backend is not None else ""
        phase = self.state.phase
        loss, calls = self._telemetry.loss(), calls_of(backend)
        degraded = self.degraded(backend)
        return Snapshot(
            *self._build,
            model,
            self.settings.fingerprint,
            phase,
            loss,
            calls,
            degraded,
            self.canary(),
            self.replay.view,
            bool(getattr(backend, "device_warning", "")),
            preprocess=getattr(backend, "preprocess", None),
            tokens=look(backend),
        )

    @property
    def state(self) -> State:
        """Where the service stands: with its model loaded it still is starting while no request can come."""
        state = self.lifecycle.state
        return state if self._accepts or not state.ready else State("starting")

    def open(self) -> None:
        """Answer on the admin port before anything else is done; nothing is ready until `accept`."""
        self._accepts = False
        if self.admin is None:
            self._start_admin()

    def start(self) -> None:
        """Start the admin port, then the model's loading; must be called in the service's event loop."""
        self.tick.start()
        self.executor.start()
        self.vip_executor.start()
        if self.admin is None:
            self._start_admin()
        self.lifecycle.start()
        self.replay.start()

    def accept(self) -> None:
        """Take note that requests come from now on, however far the model is."""
        with self._changing:
            self._accepts = True
            if self.lifecycle.state.ready:
                self._telemetry.phase("ready")

    def stop(self) -> None:
        """Stop everything, each within a bounded time."""
        self.replay.stop()
        self.lifecycle.stop()
        self.tick.stop()
        self.executor.close()
        self.vip_executor.close()
        if self.admin is not None:
            self.admin.stop()

    def _on_phase(self, phase: Phase) -> None:
        backend = self.lifecycle.backend
        if phase == "ready" and backend is not None:
            self._telemetry.model_loaded(backend.version)
            self.on_model()
        with self._changing:
            self._telemetry.phase(phase if self._accepts or phase != "ready" else "starting")

    def _start_admin(self) -> None:
        settings = self.settings
        try:
            bound = bind(settings.admin_host, settings.admin_port, shared=settings.workers > 1)
        except OSError as error:
            # `python -m service` has tried the port before; under another server the requests matter more than this.
            place = f"{settings.admin_host}:{settings.admin_port}"
            _log.error("no admin port: %s cannot be bound (%s); requests go on", place, error.strerror)
            return
        view = AdminView(
            state=lambda: self.state,
            tick_age_seconds=lambda: self.tick.age_seconds,
            snapshot=self.snapshot,
            live_limit_seconds=settings.live_tick_limit_seconds,
        )
        self.admin = AdminServer(admin_app(view), bound)
        self.admin.start()
