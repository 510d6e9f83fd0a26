"""The loop: messages from the source, their outcome to the sink, then to the state, then to whoever looks.

In this order a kill loses nothing: before the state is written, the batch is read and done again, and what the sink got
twice has the same ids; after it, the positions are behind the batch. A sink or a state that fails is tried again with
the same outcome, one batch is held meanwhile, and nothing more is read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from service.stream.letters import Sink, SinkFailed
from service.stream.message import Message
from service.stream.process import Outcome, Policy, Step, process
from service.stream.records import Records
from service.stream.source import Source
from service.stream.state import State, StateFailed, Totals, open_state
from service.stream.windows import Window

__all__ = ["Consumer", "View"]

_log = logging.getLogger("service.stream")

_WAIT_SECONDS: Final = 0.5
_GONE_SECONDS: Final = 30.0
# A batch that takes longer is halved the next time: figures are seen, and a stop is heard, between batches.
_BATCH_SECONDS: Final = 1.0
_FIRST_BATCH: Final = 16
_RETRY_SECONDS: Final = (0.1, 5.0)
_HOUR_NS: Final = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class View:
    """What others may see, as of the latest batch; made anew, never changed.

    Attributes:
        totals: Counts since the state began.
        windows: All windows that are kept.
        source_up: Whether the source answers.
        waiting: Messages that wait.
        lag_seconds: Age of the latest message that was done, while others wait; else 0.
        problem: Why the loop does not go on; "" while it does.
    """

    totals: Totals = field(default_factory=Totals)
    windows: tuple[Window, ...] = ()
    source_up: bool = False
    waiting: float = 0.0
    lag_seconds: float = 0.0
    problem: str = "starting"


class Consumer:
    """Runs one stream.

    Args:
        source: Where messages come from.
        sink: Where letters and windows go.
        state_path: RocksDB's folder.
        policy: What is decided about time and size.
        records: Writes the messages' rows.
        steps: The user's own.
        batch_messages: Messages of one batch, at most.
        keep_hours: How far back a part of the source is read that has no position.
        clock_ns: Wall clock, ns since 1970.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        state_path: Path,
        policy: Policy,
        *,
        records: Records,
        steps: Sequence[Step] = (),
        batch_messages: int = 500,
        keep_hours: float = 24.0,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._source, self._sink, self._path, self._policy = source, sink, state_path, policy
        self._records, self._steps, self._most, self._clock_ns = records, steps, batch_messages, clock_ns
        self._keep_ns = int(keep_hours * _HOUR_NS)
        self._stopping = threading.Event()
        self._state: State | None = None
        self._damage: str | None = None
        self._latest_ns = 0
        self._now_most = min(_FIRST_BATCH, batch_messages)
        self._gone_at = 0.0
        # words of our code: bounded
        self.errors: dict[str, int] = {}
        self.view = View()

    def stop(self) -> None:
        """Ask the loop to end after its batch; may be called from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Go on until stopped.

        Raises:
            SourceFailed: If the source cannot be read at all.
            StateFailed: If another process has the state.
        """
        try:
            self._begin()
            while not self._stopping.is_set():
                self.step(_WAIT_SECONDS)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of everything."""
        self._source.close()
        self._sink.close()
        self._records.close()
        if self._state is not None:
            self._state.close()
            self._state = None

    def _begin(self) -> None:
        self._open()
        self._source.start(self.state.positions, self._clock_ns() - self._keep_ns)

    @property
    def state(self) -> State:
        """The open state; before `run` has opened it there is none."""
        if self._state is None:
            raise StateFailed("other", "it is not open")
        return self._state

    def step(self, wait_seconds: float) -> int:
        """Do one batch and return how many messages it had.

        Args:
            wait_seconds: How long to wait for the first of them.
        """
        if self._state is None:
            self._begin()
        messages = self._source.poll(self._now_most, wait_seconds)
        began = time.monotonic()
        self._finish(messages)
        if time.monotonic() - began > _BATCH_SECONDS:
            self._now_most = max(1, len(messages) // 2)
        elif len(messages) == self._now_most:
            self._now_most = min(self._most, 2 * self._now_most)
        if messages and self._state is not None:
            self._source.acknowledge(self.state.positions)
        return len(messages)

    def _finish(self, messages: Sequence[Message]) -> None:
        """Carry a batch through, however often it takes."""
        gone: Sequence[str] = ()
        if not messages and time.monotonic() >= self._gone_at:
            self._gone_at = time.monotonic() + _GONE_SECONDS
            gone = self._source.gone()
        pause = _RETRY_SECONDS[0]
        while True:
            try:
                if self._state is None and self._reopened():
                    # of a fresh state these messages are no longer what comes next
                    return
                outcome = self._outcome(messages, gone)
                if messages or gone or outcome.completed or outcome.changes.closed is not None:
                    self._sink.deliver(outcome.letters, outcome.completed)
                    self.state.commit(outcome.changes)
                break
            except (SinkFailed, StateFailed) as error:
                self._failed(error)
                if self._stopping.wait(pause):
                    # the batch is not done: it is read again after the next start
                    return
                pause = min(2 * pause, _RETRY_SECONDS[1])
        self._records.write(outcome.done)
        self._look(messages)

    def _outcome(self, messages: Sequence[Message], gone: Sequence[str]) -> Outcome:
        now_ns = self._clock_ns()
        behind = self._source.backlog().behind
        return process(messages, self.state, self._policy, now_ns=now_ns, behind=behind, steps=self._steps, gone=gone)

    def _look(self, messages: Sequence[Message]) -> None:
        """Make the view that others see."""
        for message in reversed(messages):
            if message.stamp_ns is not None:
                self._latest_ns = message.stamp_ns
                break
        else:
            # a source without a clock of its own: the messages' times
            self._latest_ns = max([self._latest_ns, *self.state.totals.marks.values()]) if messages else self._latest_ns
        backlog = self._source.backlog()
        waits = backlog.messages > 0
        lag = max(0.0, (self._clock_ns() - self._latest_ns) / 1e9) if waits and self._latest_ns else 0.0
        windows = tuple(self.state.windows[minute] for minute in sorted(self.state.windows))
        self.view = View(self.state.totals, windows, backlog.up, backlog.messages, lag, "")

    def _failed(self, error: SinkFailed | StateFailed) -> None:
        name = "sink"
        if isinstance(error, StateFailed):
            name = f"state:{error.reason}"
            self._damage = str(error) if error.reason == "damaged" else None
            # what failed once may fail for ever: it is opened anew
            if self._state is not None:
                self._state.close()
                self._state = None
        self.errors[name] = self.errors.get(name, 0) + 1
        problem = str(error)
        if self.view.problem != problem:
            _log.error("the stream stands and tries again: %s", problem)
        old = self.view
        self.view = View(old.totals, old.windows, old.source_up, old.waiting, old.lag_seconds, problem)

    def _open(self) -> bool:
        """Open the state; return whether it was begun anew."""
        self._state, damage = open_state(self._path, self._damage)
        self._damage = None
        if damage is None:
            return False
        self.errors["state:damaged"] = self.errors.get("state:damaged", 0) + 1
        _log.error(
            "the state was %s; it is put aside as %s.damaged and begun anew: what the source still has of the last "
            "hours is read and counted again",
            damage,
            self._path.name,
        )
        return True

    def _reopened(self) -> bool:
        """Open the state after it failed; return whether it is another one now, so that the source goes back."""
        fresh = self._open()
        if fresh:
            self._source.start(self.state.positions, self._clock_ns() - self._keep_ns)
        return fresh
