"""Keeps a Triton alive: starts it again with growing pauses, heals dead stubs, and says how it is by a canary.

What it decides:
    ended            what it left is cleaned up, and it is started again after 0.5 s, 1 s, 2 s .. 30 s
    cannot start     tried again after the same growing pauses
    starting         for *start_seconds*: it is killed, and started again as above
    stub_dead        the model is unloaded and loaded (1.7 s), which makes new stubs
    timeout          for *hang_seconds*: it is killed, and started again as above
    unloaded         left alone: somebody took the model out, which may be meant; unless a heal of its own took it out
                     and no load has worked since: then it is loaded every 5 s, and after 5 failed loads killed
"""

from __future__ import annotations

import http.client
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from service.triton.canary import ask
from service.triton.last_exit import KINDS, write
from service.triton.repository import MODEL
from service.triton.server import Server
from service.triton.transport import TritonHttp

__all__ = ["Health", "Supervisor"]

_log = logging.getLogger("service.triton")
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 30.0
_SOUND_AFTER_SECONDS: Final = 60.0
"""A life of this length was no failed start: the next pause is the first one again."""
_HEAL_SECONDS: Final = 5.0
"""Least time between two heals, and between two tries of a load that is owed."""
_MOST_LOADS: Final = 5
"""So many loads that fail in a row are enough: a new life loads the model anyway."""


@dataclass
class Health:
    """How it is, for whoever asks; written by the supervisor's loop alone.

    Attributes:
        state: Of the last canary; "starting" before the first that was fine in this life.
        restarts: Lives after the first.
        heals: Times that the model was unloaded and loaded.
        orphans: Stubs that outlived their server and were ended.
        exits: Ends of servers by their kind, those apart that `stop` asked for.
        last_exit: Exit code and kind of the last that was neither clean nor the supervisor's doing.
    """

    state: str = "starting"
    restarts: int = 0
    heals: int = 0
    orphans: int = 0
    exits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    last_exit: tuple[int, str] | None = None


class Supervisor:
    """See above.

    Args:
        start: Starts a server.
        client: Asks it.
        host, port: Its HTTP service, for unload and load.
        canary_seconds: Most time for a canary.
        hang_seconds: So long without an answer is too long.
        start_seconds: So long without a first answer of the model is too long.
        exit_file: Keeps what the last end that was no clean one told.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        start: Callable[[], Server],
        client: TritonHttp,
        host: str,
        port: int,
        *,
        canary_seconds: float = 2.0,
        hang_seconds: float = 60.0,
        start_seconds: float = 120.0,
        exit_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start, self._client, self._place = start, client, (host, port)
        self._canary_seconds, self._hang_seconds, self._clock = canary_seconds, hang_seconds, clock
        self._pause, self._not_before, self._silent_since = _FIRST_PAUSE_SECONDS, 0.0, 0.0
        self._start_seconds, self._began = start_seconds, 0.0
        self._exit_file = exit_file
        self._heal_not_before = 0.0
        self._load_owed, self._failed_loads = False, 0
        self.server: Server | None = None
        self.health = Health()

    def step(self) -> None:
        """Look once, and do what must be done."""
        server = self.server
        if server is None:
            if self._clock() >= self._not_before:
                self._begin()
            return
        server.note_stubs()
        if (code := server.ended()) is not None:
            self._bury(server, f"ended with {code}")
            return
        state = ask(self._client, self._canary_seconds)
        # Until it listens for the first time nothing is wrong yet; a model takes its time to load.
        if self.health.state != "starting" or state in {"ok", "stub_dead", "wrong_answer"}:
            if state != self.health.state:
                _log.warning("triton: %s", state)
            self.health.state = state
        if state != "timeout":
            self._silent_since = self._clock()
        elif self._clock() - self._silent_since > self._hang_seconds:
            self._kill(server, "it did not answer")
            return
        # Refused while it loads is an answer; for ever it is none.
        if self.health.state == "starting" and self._clock() - self._began > self._start_seconds:
            self._kill(server, f"it was not there after {self._start_seconds:.0f} s")
            return
        self._mend(server, state)

    def _begin(self) -> None:
        """Start one; what keeps it from starting (no memory, no processes, a full disk) may pass."""
        try:
            self.server = self._start()
        except OSError as error:
            self.health.state = "refused"
            self._wait_longer(f"cannot be started: {error}")
            return
        self._began = self._silent_since = self._clock()
        self.health.state = "starting"

    def _mend(self, server: Server, state: str) -> None:
        """Heal a dead stub, and pay the load that a heal owes."""
        if self._clock() < self._heal_not_before:
            return
        if state == "stub_dead":
            self._heal()
        # When it is fine after all, a load does nothing and settles it: what is taken out later is somebody's wish.
        elif self._load_owed and state in {"unloaded", "ok"}:
            if state == "unloaded" and self._failed_loads >= _MOST_LOADS:
                self._kill(server, f"its model could not be loaded in {self._failed_loads} tries")
            else:
                self._load()

    def _kill(self, server: Server, why: str) -> None:
        server.process.kill()
        server.process.wait()
        self._bury(server, f"killed: {why}", stopped=True)

    def _bury(self, server: Server, how: str, *, stopped: bool = False) -> None:
        self._note_exit(server, stopped=stopped)
        self.health.orphans += server.clean()
        self.health.restarts += 1
        self.health.state = "refused"
        if self._clock() - server.started > _SOUND_AFTER_SECONDS:
            self._pause = _FIRST_PAUSE_SECONDS
        self._wait_longer(how)
        self.server = None
        self._load_owed, self._failed_loads = False, 0

    def _note_exit(self, server: Server, *, stopped: bool) -> None:
        end = server.last_exit(stopped=stopped)
        self.health.exits[end.kind] += 1
        if end.kind not in {"clean", "stopped"}:
            self.health.last_exit = (end.code, end.kind)
            if self._exit_file is not None:
                write(self._exit_file, end)

    def _wait_longer(self, how: str) -> None:
        _log.warning("triton: %s; started again in %.1f s", how, self._pause)
        self._not_before = self._clock() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def _heal(self) -> None:
        """Unload and load: a plain load is answered with 200 and does nothing."""
        self.health.heals += 1
        # owed from here on: an unload without an answer may have been done all the same
        self._load_owed = True
        # not again at once: a stub that dies of its model would keep the server busy with loading
        self._heal_not_before = self._clock() + _HEAL_SECONDS
        if self._post("unload") is not None:
            self._load()

    def _load(self) -> None:
        """Load, which is owed until it is answered with 200."""
        if self._post("load") == 200:
            self._load_owed, self._failed_loads = False, 0
        else:
            self._failed_loads += 1
        self._heal_not_before = self._clock() + _HEAL_SECONDS

    def _post(self, verb: str) -> int | None:
        """Ask for *verb* of the model and return the status, or None when no answer came."""
        connection = http.client.HTTPConnection(*self._place, timeout=20.0)
        try:
            connection.request("POST", f"/v2/repository/models/{MODEL}/{verb}", b"{}")
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            _log.warning("triton: %s failed: %s", verb, type(error).__name__)
            return None
        finally:
            connection.close()
        _log.warning("triton: %s of the model after a dead stub: %d", verb, answer.status)
        return answer.status

    def stop(self) -> None:
        """End the server and what belongs to it."""
        if self.server is not None:
            self.server.stop()
            self.server = None
