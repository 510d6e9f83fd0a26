"""Three bounded queues in front of the model, and which of them is served next: pure, with the clock as an argument.

vip    served first, at once, but no more than `VIP_STREAK` times in a row while others are ripe.
normal served `NORMAL_STREAK` times for once of the long ones, when both are ripe.
long   texts that would hold the others up or pad them out.

A queue is ripe when a whole batch waits or its oldest request has waited for the batch long enough. From the streaks
follows the bound that tests hold: whoever is at the head of a ripe queue that may be served is served within
`VIP_STREAK * (NORMAL_STREAK + 1) + NORMAL_STREAK` other batches.

Memory: `places` of each queue, and nothing that nobody waits for any more: what expires is taken out at once.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, Protocol, TypeVar

__all__ = ["LANES", "NORMAL_STREAK", "VIP_STREAK", "Lane", "LaneRules", "Lanes", "Waiting"]

Lane = Literal["vip", "normal", "long"]

LANES: Final[tuple[Lane, ...]] = ("vip", "normal", "long")
VIP_STREAK: Final = 8
NORMAL_STREAK: Final = 4


class Waiting(Protocol):
    """What waits in a queue, compared by identity."""

    @property
    def entered_ns(self) -> int:
        """When it came."""


T = TypeVar("T", bound=Waiting)


@dataclass(frozen=True)
class LaneRules:
    """Bounds of the queues and of a batch.

    Attributes:
        places: Most requests that wait in each queue.
        batch_size: Most requests of one batch.
        batch_wait_ns: Longest wait for a batch to fill; 0 sends at once whoever is there.
    """

    places: Mapping[Lane, int]
    batch_size: int
    batch_wait_ns: int


class Lanes(Generic[T]):
    """The queues.

    Args:
        rules: Their bounds.
    """

    def __init__(self, rules: LaneRules) -> None:
        self.rules = rules
        self.waiting = 0
        """Requests that wait in all queues."""
        # By identity, in order of arrival: whoever gives up is taken out without a search.
        self._waiting: dict[Lane, OrderedDict[int, T]] = {lane: OrderedDict() for lane in LANES}
        self._vip_run = 0
        self._normal_run = 0

    def depth(self, lane: Lane) -> int:
        """Return how many wait in a queue."""
        return len(self._waiting[lane])

    def head(self, lane: Lane) -> T | None:
        """Return who has waited longest in a queue."""
        return next(iter(self._waiting[lane].values()), None)

    def put(self, lane: Lane, item: T) -> bool:
        """Let an item wait; False if every place of its queue is taken."""
        queue = self._waiting[lane]
        if len(queue) >= self.rules.places[lane]:
            return False
        queue[id(item)] = item
        self.waiting += 1
        return True

    def discard(self, lane: Lane, item: T) -> bool:
        """Take an item out of its queue; False if it does not wait there."""
        if self._waiting[lane].pop(id(item), None) is None:
            return False
        self.waiting -= 1
        return True

    def take_vip(self, fits: Callable[[list[T]], bool]) -> list[T]:
        """Return the next batch of the VIP queue alone, empty if there is none that fits."""
        return self._first("vip", fits)

    def take(
        self, now_ns: int, allowed: Callable[[Lane], bool], fits: Callable[[list[T]], bool]
    ) -> tuple[Lane, list[T]] | None:
        """Return the next batch and its queue, or None if no queue is ripe, allowed and fits.

        Args:
            now_ns: The time, on the clock of `entered_ns`.
            allowed: Whether a queue may be served now.
            fits: Whether a batch may be sent now; a smaller one is tried before its queue is passed over.
        """
        ripe = [lane for lane in LANES if self._ripe(lane, now_ns) and allowed(lane)]
        for lane in self._order(ripe):
            batch = self._first(lane, fits)
            if batch:
                self._note(lane, ripe)
                return lane, batch
        return None

    def due_ns(self, now_ns: int) -> int | None:
        """Return how long until a queue that is not ripe becomes it, None if there is none."""
        waits = [
            next(iter(queue.values())).entered_ns + self.rules.batch_wait_ns - now_ns
            for lane, queue in self._waiting.items()
            if queue and not self._ripe(lane, now_ns)
        ]
        return min(waits, default=None)

    def _ripe(self, lane: Lane, now_ns: int) -> bool:
        queue = self._waiting[lane]
        if not queue:
            return False
        if lane == "vip" or len(queue) >= self.rules.batch_size:
            return True
        return now_ns - next(iter(queue.values())).entered_ns >= self.rules.batch_wait_ns

    def _order(self, ripe: list[Lane]) -> list[Lane]:
        """Return the ripe queues, whose turn it is first."""
        if len(ripe) < 2:
            return ripe
        others: list[Lane] = [lane for lane in ripe if lane != "vip"]
        if self._normal_run >= NORMAL_STREAK:
            others.reverse()
        if "vip" not in ripe:
            return others
        return [*others, "vip"] if self._vip_run >= VIP_STREAK else ["vip", *others]

    def _note(self, lane: Lane, ripe: list[Lane]) -> None:
        """Count who was served while others were ripe."""
        if lane == "vip":
            self._vip_run = self._vip_run + 1 if len(ripe) > 1 else 0
            return
        self._vip_run = 0
        if lane == "long":
            self._normal_run = 0
        elif "long" in ripe:
            self._normal_run += 1

    def _first(self, lane: Lane, fits: Callable[[list[T]], bool]) -> list[T]:
        """Take the oldest items of a queue, as many as fit."""
        queue = self._waiting[lane]
        if not queue:
            return []
        size = self.rules.batch_size
        batch = list(queue.values() if len(queue) <= size else itertools.islice(queue.values(), size))
        while batch and not fits(batch):
            batch = batch[: len(batch) // 2]
        for _ in batch:
            queue.popitem(last=False)
        self.waiting -= len(batch)
        return batch
