"""The canary's model beside the stable one: loaded when the state asks for it, judged, and taken back.

A thread of its own looks once a second at the shared state, so that neither a model that cannot be loaded nor a slow
disk is felt by requests. The stable model never waits for the canary, nor does readiness.

Memory: one more model; none while the state names none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from service.artifacts import CONFIG_FILE
from service.backend import Backend, pad
from service.canary.choice import ROLES, Role
from service.canary.judge import CanaryJudge
from service.canary.state import ROLLBACK_REASONS, CanaryState, CanaryStore, StateUnusable

__all__ = ["STATES", "CanaryView", "Load", "Versions"]

State = Literal["none", "loading", "idle", "serving", "rolled_back", "failed"]
STATES: Final[tuple[State, ...]] = ("none", "loading", "idle", "serving", "rolled_back", "failed")
"""none: no model is named; idle: loaded, and only asked by its name; failed: it cannot be loaded."""

Load = Callable[[str, Backend], Backend]
_LOOK_SECONDS: Final = 1.0
_RETRY_LOOKS: Final = 5
_WARM_UP: Final = "房间很干净。 The room was clean!"

_log = logging.getLogger("service.canary")


@dataclass(frozen=True)
class CanaryView:
    """What the service's own metrics show.

    Attributes:
        state: One of STATES.
        share: Share of the requests that go to the canary.
        rollbacks: By reason, over all workers and restarts.
        versions: Names of the loaded versions, by role.
    """

    state: State = "none"
    share: float = 0.0
    rollbacks: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(ROLLBACK_REASONS, 0))
    versions: Mapping[Role, str] = field(default_factory=dict)


class _Named(NamedTuple):
    """A model's place, and when it was written there; both empty for none."""

    model: str = ""
    written_ns: int = 0


def _named(model: str | None) -> _Named:
    try:
        written = (Path(model or "") / CONFIG_FILE).stat().st_mtime_ns if model else 0
    except OSError:
        written = 0
    return _Named(model or "", written)


class Versions:
    """Keeps the canary's model as the state wants it.

    Args:
        store: The state.
        load: Returns the model that a state names, or raises; gets the stable one.
        stable: Returns the stable model once it is there.
        judge: Counts and judges.
        wanted: Model and share of the settings.
        look_seconds: Between two looks at the state.
    """

    def __init__(
        self,
        store: CanaryStore,
        load: Load,
        stable: Callable[[], Backend | None],
        judge: CanaryJudge,
        *,
        wanted: tuple[str | None, float] = (None, 0.0),
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        self.backend: Backend | None = None
        """The canary, None while there is none: read by requests without a lock."""
        self.share = 0.0
        self.judge = judge
        self._store, self._load, self._stable, self._wanted = store, load, stable, wanted
        self._look_seconds = look_seconds
        self._state = CanaryState()
        self._name: State = "none"
        self._named = self._loaded = _Named()
        self._stamp: object = ()
        self._told = ""
        self._wait_looks = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="canary", daemon=True)

    @property
    def model(self) -> str:
        """What the state names."""
        return self._state.model or ""

    def view(self) -> CanaryView:
        """Return what metrics show; from any thread."""
        backends = {"stable": self._stable(), "canary": self.backend}
        names = {role: backend.version for role in ROLES if (backend := backends[role]) is not None}
        return CanaryView(self._name, self.share, self._state.rollbacks, names)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self, wait_seconds: float = 1.0) -> None:
        """Stop looking, and wait a bounded time."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)

    def _run(self) -> None:
        while not self._stopped.wait(self._look_seconds if self._stamp != () else 0.01):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the stable version goes on, whatever is wrong here
                _log.exception("the canary could not be looked after; the stable version answers")
                self.share = 0.0

    def look(self) -> None:
        """Follow the state, and judge."""
        stable = self._stable()
        if stable is None:
            return
        stamp = self._store.stamp()
        if self._stamp == () or stamp != self._stamp:
            self._stamp = stamp
            self._read()
        if self._named != self._loaded:
            self._swap(stable)
        self._show()
        if self.share > 0.0 and (verdict := self.judge.look()) is not None:
            self._take_back(verdict.reason, verdict.detail)

    def _read(self) -> None:
        try:
            found = self._store.begin(*self._wanted)
        except (StateUnusable, OSError) as error:
            self._say(f"the canary's state cannot be used ({error}); mend: inferdeck canary set, or remove the file")
            # What cannot be read asks for nothing: no request goes where nobody can tell that it should.
            found = CanaryState(rollbacks=self._state.rollbacks)
        if found.generation != self._state.generation:
            self.judge.reset()
            _log.info("canary: model %s, share %g, by %s %s", found.model, found.share, found.by, found.reason)
        self._state = found
        # Only when the state changes: a model that is trained anew at its place is taken when somebody says so.
        self._named = _named(found.model)

    def _swap(self, stable: Backend) -> None:
        """Load what the state names in the place of what there is."""
        if self._state.model is None:
            self.backend, self._loaded = None, self._named
            return
        if self._wait_looks > 0:
            self._wait_looks -= 1
            return
        self.share, self.backend, self._loaded, self._name = 0.0, None, _Named(), "loading"
        try:
            backend = self._load(self._state.model, stable)
            if tuple(backend.labels) != tuple(stable.labels):
                raise ValueError("its labels are not the stable version's")
            backend.forward(*pad([backend.encode(_WARM_UP).ids]))
        except Exception as error:  # noqa: BLE001 - whatever a foreign model does; said, and tried again
            self._wait_looks = _RETRY_LOOKS
            self._say(f"the canary cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return
        self.judge.reset()
        self.backend, self._loaded, self._told = backend, self._named, ""

    def _show(self) -> None:
        self.share = self._state.share if self.backend is not None else 0.0
        if self.backend is None:
            self._name = "none" if self._state.model is None else "failed"
        elif self._state.share > 0.0:
            self._name = "serving"
        else:
            self._name = "rolled_back" if self._state.rolled_back else "idle"

    def _take_back(self, reason: str, detail: str) -> None:
        # At once in this worker, whether or not the file can be written.
        self.share = 0.0
        try:
            done = self._store.roll_back(reason, detail, self._state.generation)
        except (StateUnusable, OSError) as error:
            self._say(f"the rollback cannot be written ({error}); this worker alone sends nothing to the canary")
            counts = {**self._state.rollbacks, reason: self._state.rollbacks.get(reason, 0) + 1}
            self._state = CanaryState(model=self._state.model, by="rollback", reason=detail, rollbacks=counts)
            return
        _log.warning("canary %s: %s: %s", "rolled back" if done else "was rolled back by another", reason, detail)
        self._read()
        self._show()

    def _say(self, told: str) -> None:
        # Once per change: the same failure every few seconds says nothing new.
        if told != self._told:
            self._told = told
            _log.error("%s", told)
