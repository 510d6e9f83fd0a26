"""Who is served next, by the hour of a clock that tests turn."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.lanes import LANES, NORMAL_STREAK, VIP_STREAK, Lane, LaneRules, Lanes

MS = 1_000_000


@dataclass(eq=False)
class Item:
    """What waits."""

    entered_ns: int
    lane: Lane = "normal"


def lanes(batch_size: int = 8, wait_ms: int = 10, places: int = 20) -> Lanes[Item]:
    """Return empty queues."""
    return Lanes(LaneRules(dict.fromkeys(LANES, places), batch_size, wait_ms * MS))


def take(queues: Lanes[Item], now_ns: int) -> tuple[Lane, list[Item]] | None:
    """Take the next batch with every queue allowed and any size fitting."""
    return queues.take(now_ns, lambda _lane: True, lambda _batch: True)


def test_normal_waits_for_a_full_batch_or_ten_milliseconds() -> None:
    """Seven wait until the first of them has waited its time; eight go at once; fewer are said when they are due."""
    queues = lanes()
    seven = [Item(0) for _ in range(7)]
    for item in seven:
        queues.put("normal", item)
    assert take(queues, 10 * MS - 1) is None
    assert queues.due_ns(4 * MS) == 6 * MS
    assert take(queues, 10 * MS) == ("normal", seven)
    eight = [Item(20 * MS) for _ in range(9)]
    for item in eight:
        queues.put("normal", item)
    assert take(queues, 20 * MS) == ("normal", eight[:8])
    assert take(queues, 20 * MS) is None


def test_vip_is_ripe_at_once_and_takes_no_other_along() -> None:
    """A VIP does not wait for a batch, and shares its call with VIPs alone."""
    queues = lanes()
    vip, other = Item(0), Item(0)
    queues.put("normal", other)
    queues.put("vip", vip)
    assert take(queues, 0) == ("vip", [vip])
    assert take(queues, 0) is None


def test_full_queue_takes_nobody_and_the_others_do() -> None:
    """Each queue has its own bound."""
    queues = lanes(places=2)
    assert [queues.put("normal", Item(0)) for _ in range(3)] == [True, True, False]
    assert queues.put("long", Item(0))
    assert (queues.waiting, queues.depth("normal")) == (3, 2)


def test_whoever_gives_up_is_out_and_out_only_once() -> None:
    """What expires leaves its place to another."""
    queues = lanes(places=1)
    item = Item(0)
    queues.put("normal", item)
    assert queues.discard("normal", item)
    assert not queues.discard("normal", item)
    assert queues.put("normal", Item(1))


def test_smaller_batch_is_taken_where_the_whole_does_not_fit() -> None:
    """Memory for two lets two through, and no room lets others of another queue through."""
    queues = lanes(wait_ms=0)
    items = [Item(0) for _ in range(8)]
    for item in items:
        queues.put("normal", item)
    assert queues.take(0, lambda _lane: True, lambda batch: len(batch) <= 2) == ("normal", items[:2])
    assert queues.take(0, lambda _lane: True, lambda _batch: False) is None
    assert queues.depth("normal") == 6


def test_queue_that_is_not_allowed_is_passed_over() -> None:
    """Long texts wait for their thread while short ones go on."""
    queues = lanes(wait_ms=0)
    short, long = Item(0), Item(0)
    queues.put("long", long)
    queues.put("normal", short)
    assert queues.take(0, lambda lane: lane != "long", lambda _batch: True) == ("normal", [short])
    assert queues.take(0, lambda lane: lane != "long", lambda _batch: True) is None


@pytest.mark.parametrize("lane", ["normal", "long"])
def test_nobody_starves_under_a_flood_of_vips(lane: Lane) -> None:
    """With VIPs always waiting, every ninth batch is another's."""
    queues = lanes(batch_size=1, wait_ms=0)
    queues.put(lane, Item(0, lane))
    served: list[Lane] = []
    for _ in range(VIP_STREAK + 1):
        queues.put("vip", Item(0, "vip"))
        found = take(queues, 0)
        assert found is not None
        served.append(found[0])
    assert served == ["vip"] * VIP_STREAK + [lane]


Arrivals = st.lists(st.lists(st.sampled_from(LANES), max_size=4), min_size=1, max_size=120)


@given(Arrivals, st.integers(1, 4))
def test_every_waiting_request_is_served_within_the_bound(arrivals: list[list[Lane]], size: int) -> None:
    """Whatever comes, a head of a ripe queue waits for a bounded number of other batches; queues keep order."""
    queues = lanes(batch_size=size, wait_ms=0, places=10)
    bound = VIP_STREAK * (NORMAL_STREAK + 1) + NORMAL_STREAK
    waiting: dict[Lane, list[Item]] = {lane: [] for lane in LANES}
    passed: dict[Lane, int] = dict.fromkeys(LANES, 0)
    for now, coming in enumerate([*arrivals, *[[]] * 40]):
        for lane in coming:
            item = Item(now, lane)
            if queues.put(lane, item):
                waiting[lane].append(item)
        assert all(queues.depth(lane) <= 10 for lane in LANES)
        found = take(queues, now)
        if found is None:
            assert queues.waiting == 0
            continue
        lane, batch = found
        assert 1 <= len(batch) <= size
        assert waiting[lane][: len(batch)] == batch
        del waiting[lane][: len(batch)]
        passed[lane] = 0
        for other in LANES:
            passed[other] = passed[other] + 1 if other != lane and waiting[other] else 0
            assert passed[other] <= bound
    assert queues.waiting == sum(len(items) for items in waiting.values())
