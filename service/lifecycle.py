"""From nothing to a model that answers: phases, failures with their mend, and another try once mended.

A missing or damaged model keeps the service up and not ready; the folder is looked at again every few seconds, so that
training it is all the mending there is. A loaded model is never loaded a second time in one process (row B11).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from service.artifacts import ArtifactsDamaged, ArtifactsMissing
from service.backend import Backend, pad

__all__ = ["PHASES", "Lifecycle", "Phase", "State"]

Phase = Literal["starting", "loading_model", "warming_up", "ready", "model_missing", "model_damaged", "model_failed"]

PHASES: Final[tuple[Phase, ...]] = (
    "starting",
    "loading_model",
    "warming_up",
    "ready",
    "model_missing",
    "model_damaged",
    "model_failed",
)
"""Every phase there is; the labels of `runtime_phase`."""

_WARM_UP_TEXT: Final = "房间很干净。 The room was clean, but the battery died after two hours!"

_log = logging.getLogger("service.lifecycle")


@dataclass(frozen=True)
class State:
    """Where the service stands.

    Attributes:
        phase: The phase.
        detail: What is wrong, in one line for the operator; empty while all is well. A model that is ready may
            compute on another device than it was asked to.
    """

    phase: Phase
    detail: str = ""

    @property
    def ready(self) -> bool:
        """Whether requests get judgements."""
        return self.phase == "ready"

    @property
    def failed(self) -> bool:
        """Whether the model cannot be had until somebody mends it."""
        return self.phase in {"model_missing", "model_damaged", "model_failed"}


class Lifecycle:
    """Loads the model in a thread of its own, so that the event loop and the admin port answer meanwhile.

    Args:
        load: Returns the loaded backend, or raises.
        retry_seconds: Time between two tries after a failure.
        on_phase: Told each new phase, from the loading thread.
    """

    def __init__(self, load: Callable[[], Backend], retry_seconds: float, on_phase: Callable[[Phase], None]) -> None:
        self.backend: Backend | None = None
        self.state = State("starting")
        self._load = load
        self._retry_seconds = retry_seconds
        self._on_phase = on_phase
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model-load", daemon=True)

    def start(self) -> None:
        """Start loading; returns at once."""
        self._thread.start()

    def stop(self, wait_seconds: float = 1.0) -> None:
        """Stop trying, and wait a bounded time for the thread."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)

    def _enter(self, phase: Phase, detail: str = "") -> None:
        previous, self.state = self.state, State(phase, detail)
        # Once per change: the same failure every few seconds says nothing new.
        if detail and previous.detail != detail:
            _log.error("%s: %s", phase, detail)
        self._on_phase(phase)

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._try():
                return
            self._stopped.wait(self._retry_seconds)

    def _try(self) -> bool:
        if not self.state.failed:
            self._enter("loading_model")
        try:
            backend = self._load()
            self._enter("warming_up")
            backend.forward(*pad([backend.encode(_WARM_UP_TEXT).ids]))
        except ArtifactsMissing as error:
            self._enter("model_missing", str(error))
        except ArtifactsDamaged as error:
            self._enter("model_damaged", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a runtime throws, the service stays up and says it
            self._enter("model_failed", f"{type(error).__name__}: {error}"[:500])
        else:
            self.backend = backend
            self._enter("ready", str(getattr(backend, "device_warning", "")))
            return True
        return False
