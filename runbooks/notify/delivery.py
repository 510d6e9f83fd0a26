"""Send follow-ups from threads of their own: whatever a receiver does, neither triage nor another one waits.

Memory    per channel at most `most_waiting` messages of about 10 kB each; more are lost, and that is counted and said.
Retries   with doubling pauses, `most_tries` in all; then the message is lost, visibly.
"""

from __future__ import annotations

import collections
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome, refused

__all__ = ["RESULTS", "Channel", "Delivery", "Report", "Worker"]

# What can become of a message: it arrived; was refused for good; was tried until the end of patience; found no room;
# was still waiting when triage stopped.
RESULTS: Final = ("sent", "refused", "gave_up", "no_room", "stopped")
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0

_log = logging.getLogger("runbooks.notify")

# Told the report's id, the channel, the result and what was said.
Report = Callable[[str | None, str, str, str], None]


@dataclass(frozen=True)
class Channel:
    """One way to people.

    Attributes:
        name: slack, dingtalk, feishu, email, webhook or grafana.
        send: Tries once; may take seconds.
    """

    name: str
    send: Callable[[Message], Outcome]


class Worker:
    """The thread of one channel.

    Args:
        channel: The way.
        report: Hears of each message's end.
        most_waiting: Messages that may wait.
        most_tries: Tries of one message.
        pause: Waits so many seconds; returns True when it is time to stop.
    """

    def __init__(
        self,
        channel: Channel,
        report: Report,
        most_waiting: int = 100,
        most_tries: int = 7,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        self.channel = channel
        self.results: Counter[str] = Counter(dict.fromkeys(RESULTS, 0))
        self._report, self._most_waiting, self._most_tries = report, most_waiting, most_tries
        self._waiting: collections.deque[Message] = collections.deque()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._pause = pause or self._stopping.wait
        self._thread = threading.Thread(target=self._run, name=f"notify-{channel.name}", daemon=True)

    def __len__(self) -> int:
        return len(self._waiting)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def offer(self, message: Message) -> bool:
        """Take a message, or lose it visibly when too many wait.

        Args:
            message: What to send.
        """
        with self._changed:
            room = len(self._waiting) < self._most_waiting and not self._stopping.is_set()
            if room:
                self._waiting.append(message)
                self._changed.notify()
        if not room:
            self._end(message, "no_room", f"{self._most_waiting} messages wait already")
        return room

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Stop after the try at hand; what still waits is lost, and that is said."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        while self._waiting:
            self._end(self._waiting.popleft(), "stopped", "triage stopped before it was sent")

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping.is_set():
                    self._changed.wait()
                if self._stopping.is_set():
                    return
                message = self._waiting[0]
            self.deliver(message)
            with self._changed:
                if self._waiting and self._waiting[0] is message:
                    self._waiting.popleft()

    def deliver(self, message: Message) -> None:
        """Try one message until it is sent, refused or given up.

        Args:
            message: What to send.
        """
        for number in range(self._most_tries):
            outcome = self._try(message)
            if outcome.state == "sent":
                self._end(message, "sent", "")
                return
            if outcome.state == "refused":
                self._end(message, "refused", outcome.detail)
                return
            last = number == self._most_tries - 1
            if not last and self._pause(max(outcome.wait_seconds, backoff(number))):
                self._end(message, "stopped", outcome.detail)
                return
        self._end(message, "gave_up", f"{self._most_tries} tries, at last: {outcome.detail}")

    def _try(self, message: Message) -> Outcome:
        try:
            return self.channel.send(message)
        except Exception as error:  # noqa: BLE001 - the last door: the next message must still be sent
            _log.exception("follow-up by %s stumbled", self.channel.name)
            return refused(f"failed: {type(error).__name__}")

    def _end(self, message: Message, result: str, said: str) -> None:
        self.results[result] += 1
        if result != "sent":
            _log.warning("follow-up of report %s lost: %s, %s: %s", message.report, self.channel.name, result, said)
        self._report(message.report, self.channel.name, result, said)


def backoff(number: int, chance: Callable[[], float] = random.random) -> float:
    """Return how long to wait after a failed try, in seconds.

    Doubling, at most a minute, less up to a quarter, so that many senders do not come back at once.

    Args:
        number: Of the try, from 0.
        chance: 0 to 1.
    """
    return min(_FIRST_PAUSE_SECONDS * 2.0**number, _LONGEST_PAUSE_SECONDS) * (1.0 - chance() / 4)


class Delivery:
    """All channels.

    Args:
        channels: The ways; none is well too.
        report: Hears of each message's end, from the channels' threads.
        most_waiting: Messages that may wait, per channel.
        most_tries: Tries of one message.
    """

    def __init__(
        self, channels: Sequence[Channel], report: Report, most_waiting: int = 100, most_tries: int = 7
    ) -> None:
        self.workers = [Worker(channel, report, most_waiting, most_tries) for channel in channels]

    def start(self) -> None:
        """Begin to send."""
        for worker in self.workers:
            worker.start()

    def offer(self, message: Message) -> None:
        """Hand a message to every channel."""
        for worker in self.workers:
            worker.offer(message)

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Stop all channels, within the time for all together."""
        end = time.monotonic() + timeout_seconds
        for worker in self.workers:
            worker.stop(max(0.1, end - time.monotonic()))
