"""A batch of messages: judged, counted into windows, and what follows from that: changes of the state, dead letters.

Pure but for the look into the state: the same batch gives the same outcome, so that one whose result could not be
written is done again without counting twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from probes.outgoing import Context, from_headers
from service.stream.features import Features, features_of
from service.stream.message import Message, Read, Reason, Refused, read_query
from service.stream.state import Changes, State, Totals
from service.stream.windows import MINUTE_NS, Window, minute_of

__all__ = ["Done", "Letter", "Outcome", "Policy", "process"]

_SECOND: Final = 1_000_000_000
Step = Callable[[Read], None]


@dataclass(frozen=True, slots=True)
class Policy:
    """What is decided about time and size.

    Attributes:
        message_bytes: Larger messages are not looked at.
        grace_seconds: So much later than a window's end the latest message must be before it is complete.
        late_seconds: So long after that it can be corrected.
        future_seconds: So far ahead of this machine's clock a message may be.
        on_time_seconds: A window that is complete so much later than its end and the grace was late.
        keep_windows: Complete windows that are kept.
    """

    message_bytes: int = 16 * 1024
    grace_seconds: float = 10.0
    late_seconds: float = 3600.0
    future_seconds: float = 60.0
    on_time_seconds: float = 60.0
    keep_windows: int = 1440


class Letter(NamedTuple):
    """A message that is counted in no window.

    Attributes:
        id: The same whenever the same message of the same source is refused again.
        message: The message.
        reason: Why.
        field: The field at fault, where one can be named.
        context: What its headers say.
    """

    id: str
    message: Message
    reason: Reason
    field: str | None
    context: Context


class Done(NamedTuple):
    """What came of one message, for its record.

    Attributes:
        message: The message.
        context: What its headers say.
        read: Its content; None where that is none of the contract's.
        features: Of its text; None where it was not looked at.
        reason: Why it is a dead letter, "duplicate", or None for a message that was counted.
    """

    message: Message
    context: Context
    read: Read | None
    features: Features | None
    reason: str | None


@dataclass(slots=True)
class Outcome:
    """What a batch comes to.

    Attributes:
        changes: Of the state.
        letters: Dead letters.
        completed: Windows that are complete now, or corrected.
        done: What came of each message, in order.
    """

    changes: Changes
    letters: list[Letter] = field(default_factory=list)
    completed: list[Window] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)


class _Batch:
    """What is being made of one batch."""

    def __init__(self, state: State, policy: Policy, now_ns: int) -> None:
        self.state, self.policy, self.now_ns = state, policy, now_ns
        self.totals: Totals = state.totals.copy()
        self.added: dict[int, Window] = {}
        self.seen: dict[bytes, None] = {}
        self.letters: list[Letter] = []
        self.done: list[Done] = []
        self.positions: dict[str, int] = {}

    def refuse(self, message: Message, context: Context, reason: Reason, where: str | None, read: Read | None) -> None:
        name = f"{message.partition}\0{message.position}".encode()
        self.letters.append(Letter(blake2b(name, digest_size=8).hexdigest(), message, reason, where, context))
        self.totals.count("messages:dead_letter")
        self.totals.count(f"letters:{reason}")
        self.done.append(Done(message, context, read, None, reason))

    def judge(self, message: Message, context: Context) -> Read | None:
        """Return what the message says if it can be counted; else it is a dead letter by now."""
        self.positions[message.partition] = message.position
        try:
            read = read_query(message, self.policy.message_bytes)
        except Refused as refused:
            self.refuse(message, context, refused.reason, refused.field, None)
            return None
        if read.event_ns > self.now_ns + self.policy.future_seconds * _SECOND:
            self.refuse(message, context, "future", "timestamp", read)
            return None
        if (minute_of(read.event_ns) + 1) * MINUTE_NS <= self.totals.horizon_ns:
            self.refuse(message, context, "late", "timestamp", read)
            return None
        marks = self.totals.marks
        if read.event_ns > marks.get(message.partition, 0):
            marks[message.partition] = read.event_ns
        # its place among what came; `count` says what came of it
        self.done.append(Done(message, context, read, None, None))
        return read

    def run(self, step: Step, read: Read) -> None:
        try:
            step(read)
        except Exception:  # noqa: BLE001  the user's code: what it cannot do is counted, and the message goes on
            self.totals.count("steps:failed")

    def count(self, place: int, read: Read, key: bytes, *, known: bool) -> None:
        message, context = self.done[place][:2]
        if known or key in self.seen:
            self.totals.count("messages:duplicate")
            self.done[place] = Done(message, context, read, None, "duplicate")
            return
        self.seen[key] = None
        minute = minute_of(read.event_ns)
        window = self.added.get(minute)
        if window is None:
            window = self.added[minute] = Window(minute)
        features = features_of(read.query.utterance)
        window.add(features, read.query.device_type)
        self.totals.count("messages:ok")
        self.done[place] = Done(message, context, read, features, None)


def process(
    messages: Sequence[Message],
    state: State,
    policy: Policy,
    *,
    now_ns: int,
    behind: frozenset[str] | None,
    steps: Sequence[Step] = (),
    gone: Sequence[str] = (),
) -> Outcome:
    """Return what a batch comes to; nothing is changed yet.

    Args:
        messages: In the order of their source.
        state: Looked into, not written.
        policy: What is decided about time and size.
        now_ns: This machine's clock.
        behind: Parts of the source of which more is to be read; None where the source does not answer.
        steps: The user's own, called with each message that fits the contract.
        gone: Parts of the source that are no longer there.

    Raises:
        StateFailed: If the state cannot be read.
    """
    batch = _Batch(state, policy, now_ns)
    judged = []
    for message in messages:
        context = from_headers(message.headers) if message.headers else Context()
        read = batch.judge(message, context)
        if read is not None:
            for step in steps:
                batch.run(step, read)
            key = state.seen_key(minute_of(read.event_ns), read.identity(state.key))
            judged.append((len(batch.done) - 1, read, key))
    known = state.known([key for *_, key in judged])
    for (place, read, key), there in zip(judged, known, strict=True):
        batch.count(place, read, key, known=there)
    for partition in gone:
        batch.totals.marks.pop(partition, None)
    return _outcome(batch, behind, gone)


def _outcome(batch: _Batch, behind: frozenset[str] | None, gone: Sequence[str]) -> Outcome:
    """Add the batch's windows to the state's, and complete, close and drop what the marks of time say."""
    state, policy, totals = batch.state, batch.policy, batch.totals
    windows = {
        minute: state.windows[minute].plus(added) if minute in state.windows else added
        for minute, added in batch.added.items()
    }
    marks = totals.marks
    # A part that was read to its end holds nobody up; one that is behind does, whatever the others have reached.
    # One of which nothing was read yet may hold what is older than anything.
    waiting = list(marks.values()) if behind is None else [marks.get(name, 0) for name in behind]
    low = min(waiting) if waiting else max(marks.values(), default=0)
    grace = int(policy.grace_seconds * _SECOND)
    # All is read: what this machine's clock has passed is complete, or the last minute of the day would never be.
    mark = max(low, batch.now_ns - grace) if behind is not None and not behind else low
    completed = _complete(batch, windows, mark - grace)
    horizon = low - int(policy.late_seconds * _SECOND)
    closed = None
    if horizon > totals.horizon_ns:
        # windows up to this one ended before
        before, totals.horizon_ns = totals.horizon_ns, horizon
        if horizon // MINUTE_NS > before // MINUTE_NS:
            closed = horizon // MINUTE_NS - 1
    everything = sorted({*state.windows, *windows})
    dropped = [
        minute
        for minute in everything[: max(0, len(everything) - policy.keep_windows)]
        if (minute + 1) * MINUTE_NS <= totals.horizon_ns and minute not in windows
    ]
    changes = Changes(windows, batch.seen, totals, batch.positions, gone, closed, dropped)
    return Outcome(changes, batch.letters, completed, batch.done)


def _complete(batch: _Batch, windows: dict[int, Window], upto_ns: int) -> list[Window]:
    """Complete what ended before *upto_ns*, and give corrected windows another revision; return both."""
    state, totals, now_ns = batch.state, batch.totals, batch.now_ns
    allowed_ns = int((batch.policy.grace_seconds + batch.policy.on_time_seconds) * _SECOND)
    found = []
    for minute in sorted({*windows, *(minute for minute, one in state.windows.items() if not one.revision)}):
        window = windows.get(minute) or state.windows[minute]
        if not window.revision and window.end_ns > upto_ns:
            continue
        corrected = window.revision > 0
        whole = Window(minute, window.sums, window.revision + 1, window.completed_ns or now_ns)
        if corrected:
            totals.count("windows:corrected")
        else:
            totals.count("windows:late" if now_ns - window.end_ns > allowed_ns else "windows:on_time")
        windows[minute] = whole
        found.append(whole)
    return found
