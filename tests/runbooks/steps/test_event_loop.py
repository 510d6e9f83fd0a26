"""Signs of a blocked event loop, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runbooks.evidence import Evidence, Series, Window
from runbooks.rows import Episode
from runbooks.signals import HEARTBEAT, QUERIES
from runbooks.steps import event_loop

BLOCK = {"block_seconds": 0.2, "block_share": 0.05}
WAIT = {"wait_seconds": 0.2, "wait_share": 0.05}


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def value(step: Callable[[Evidence], Any], known: Evidence) -> float:
    """Return what a step measured, as a number."""
    measured = step(known).value
    assert isinstance(measured, float), measured
    return measured


def test_the_share_of_late_time_is_that_of_the_blocks(world: Callable[..., Any]) -> None:
    """At 20 requests a second, 5% of them 200 ms each, the loop is late for about a fifth of the time."""
    blocked = evidence(world(**BLOCK))
    truth = value(event_loop.blocked_share, blocked)

    # a bucket's middle is within a factor 1.6 of its values, and a lag is up to a tick shorter than its block
    assert truth / 1.7 <= value(event_loop.lag_share, blocked) <= truth * 1.6
    assert 0.0 == value(event_loop.lag_share, evidence(world(**WAIT)))


def test_the_share_is_compared_with_the_services_own_past(world: Callable[..., Any]) -> None:
    """Blocked: many times the baseline. Without a baseline there is no ratio."""
    assert value(event_loop.lag_ratio, evidence(world(**BLOCK))) > 10
    assert event_loop.lag_ratio(evidence(world(before=10.0, **BLOCK))).value is None


@pytest.mark.parametrize("block", [0.2, 0.5, 1.0, 5.0])
def test_others_stand_still_beside_a_blocking_request_and_go_on_beside_a_waiting_one(
    world: Callable[..., Any], block: float
) -> None:
    """The same delay, once on the loop and once awaited, is told apart by what the others do meanwhile."""
    share = min(0.05, 0.02 / block)
    blocked = value(event_loop.others_move_on, evidence(world(block_seconds=block, block_share=share, during=120.0)))
    waiting = value(event_loop.others_move_on, evidence(world(wait_seconds=block, wait_share=share, during=120.0)))

    assert blocked < 0.25
    assert waiting > 0.6


def test_with_little_traffic_it_cannot_be_told(world: Callable[..., Any]) -> None:
    """Too few expected events are no evidence either way."""
    assert event_loop.others_move_on(evidence(world(rate=0.5, **BLOCK))).value is None


def test_blocks_shorter_than_a_pause_are_neither_for_nor_against(world: Callable[..., Any]) -> None:
    """80 ms at 20 requests a second leave no pause out of the ordinary: it cannot be told, nor from rows alone."""
    known = evidence(world(block_seconds=0.08, block_share=0.1))

    for source in (known, replace(known, series=None)):
        assert event_loop.others_move_on(source).value is None


def test_the_blocking_frame_is_named(world: Callable[..., Any]) -> None:
    """The innermost frame, with two parts of its path; an idle loop's frame names nobody."""
    idle = evidence(world(frame="/usr/lib/python3.11/asyncio/selectors.py:468 select", **BLOCK))
    busy = evidence(world(frame="/srv/someones/secret/app/profile.py:12 fetch_profile", **BLOCK))

    assert "app/profile.py:12 fetch_profile" == event_loop.blocking_stack(busy).value
    assert event_loop.blocking_stack(idle).value is None
    assert (0.0, 1.0) == (value(event_loop.stacks_at_work, idle), value(event_loop.stacks_at_work, busy))


def test_slow_requests_meet_blocked_times(world: Callable[..., Any]) -> None:
    """All slow requests of a blocked loop overlap its episodes; without episodes nothing is said."""
    assert value(event_loop.slow_overlap, evidence(world(**BLOCK))) > 0.9
    assert event_loop.slow_overlap(evidence(world(**WAIT))).value is None


def test_episodes_that_miss_the_slow_requests_speak_against(world: Callable[..., Any]) -> None:
    """Blocked times at other moments explain nothing."""
    known = evidence(world(**WAIT))
    assert known.rows is not None
    quiet = np.arange(known.window.incident[0], known.window.incident[1], 10.0).tolist()
    elsewhere = replace(
        known.rows, rings=(replace(known.rows.rings[0], episodes=tuple(Episode(at, 0.0005, ("f",)) for at in quiet)),)
    )

    assert value(event_loop.slow_overlap, replace(known, rows=elsewhere)) < 0.2


def test_a_full_list_of_episodes_says_nothing_about_the_time_before_it(world: Callable[..., Any]) -> None:
    """The service keeps 32 episodes; if all of them are later than the incident, the incident is unknown."""
    known = evidence(world(**BLOCK))
    assert known.rows is not None
    late = tuple(Episode(known.window.until + n, 0.2, ("f",)) for n in range(32))
    later = replace(known.rows, rings=(replace(known.rows.rings[0], episodes=late),))

    assert event_loop.blocked_share(replace(known, rows=later)).value is None


def test_a_loop_that_never_returns_ages_while_the_thread_beats(world: Callable[..., Any]) -> None:
    """A hung loop leads the thread's age; a frozen process does not."""
    hung, frozen = evidence(world(block_forever_after=10.0)), evidence(world(dead_after=10.0, frozen=True))

    assert value(event_loop.loop_tick_age, hung) > 40.0
    assert value(event_loop.loop_tick_age, frozen) < 1.0


def test_without_a_threads_heartbeat_the_status_page_tells() -> None:
    """One heartbeat alone is no comparison."""
    loop = Series({"source": "loop"}, np.array([1.0, 2.0]), np.array([0.1, 60.0]))

    assert event_loop.loop_tick_age(Evidence(Window(0.0, 5.0, 1.0), {HEARTBEAT: (loop,)})).value is None


def test_collector_pauses_are_weighed_against_the_late_time(world: Callable[..., Any]) -> None:
    """Pauses that make up the lag are another cause; where nothing is late there is nothing to explain."""
    known = evidence(world(**BLOCK))
    assert known.series is not None
    times = known.series["up"][0].times
    pausing = Series({"generation": "2"}, times, np.maximum(times - known.window.incident[0], 0.0) * 0.2)
    series = {**known.series, "runtime_gc_pause_seconds_sum": (pausing,)}

    assert 0.0 == value(event_loop.gc_share, known)
    assert value(event_loop.gc_share, replace(known, series=series)) > 0.5
    assert event_loop.gc_share(evidence(world(**WAIT))).value is None


@pytest.mark.parametrize("name", event_loop.__all__)
def test_each_step_says_so_when_it_cannot_see(name: str) -> None:
    """No sources: no value, never 0, and a sentence."""
    found = getattr(event_loop, name)(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert f"event_loop.{name}" == found.step


def with_episodes(known: Evidence, *signs: Any) -> Evidence:
    """Return the evidence with other blocked times of 120 ms: stack, CPU, late thread, wait for CPU (seconds) each."""
    assert known.rows is not None
    since = known.window.incident[0]
    episodes = tuple(Episode(since + 1.0 + at, 0.12, *sign) for at, sign in enumerate(signs))
    return replace(known, rows=replace(known.rows, rings=(replace(known.rows.rings[0], episodes=episodes),)))


IDLE = ("/usr/lib/python3.11/asyncio/runners.py:118 Runner.run",)
WORK = ("/srv/app/profile.py:12 fetch_profile",)


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        (((), None, None), None),  # no stack, from an older page: cannot see
        (((), 0.0, 0.0), None),  # neither computed nor stood the watching thread still: a call that waits
        (((), 0.11, 0.0), 1.0),
        (((), 0.11, 0.1), 1.0),  # holds the GIL: the watching thread waits, but something computes
        (((), 0.0, 0.11), 0.0),
        ((WORK, 0.0, 0.11), 0.0),  # a machine that stopped amid a request
        ((WORK, 0.0, 0.0), 1.0),  # time.sleep
        ((WORK, None, None), 1.0),
        ((IDLE, 0.0, 0.0), 0.0),
        ((WORK, 0.01, 0.0, 0.1), 0.0),  # ready and not let: the watching thread found a CPU, the loop's did not
        ((WORK, 0.11, 0.0, 0.0), 1.0),
    ],
)
def test_only_what_is_seen_speaks_for_or_against_the_machine(
    world: Callable[..., Any], sign: Any, expected: float | None
) -> None:
    """A missing stack is no sign; a stalled machine lets nothing compute and nothing watch, or the loop be idle."""
    known = with_episodes(evidence(world(**BLOCK)), sign, sign, sign)

    assert expected == event_loop.stacks_at_work(known).value


def test_many_blocks_without_a_stack_do_not_outvote_the_few_with_one(world: Callable[..., Any]) -> None:
    """27 of 32 without a stack and three that show work: work."""
    signs = [((), None, None)] * 27 + [(WORK, None, None)] * 3

    assert 1.0 == event_loop.stacks_at_work(with_episodes(evidence(world(**BLOCK)), *signs)).value


def test_the_users_own_frame_is_named_and_the_innermost_stays_as_detail(world: Callable[..., Any]) -> None:
    """A standard library's frame tells nothing alone; frames outside of the loop's own did not block it."""
    own = (
        "/usr/lib/python3.11/pathlib.py:1013 Path.stat",
        "/srv/.venv/lib/python3.11/site-packages/some/files.py:3 look",
        "/srv/app/profile.py:12 fetch_profile",
        "/usr/lib/python3.11/asyncio/events.py:84 Handle._run",
        "/srv/main.py:9 <module>",
    )
    mine = event_loop.blocking_stack(with_episodes(evidence(world(**BLOCK)), (own, None, None)))
    foreign = event_loop.blocking_stack(with_episodes(evidence(world(**BLOCK)), (own[:2] + own[3:], None, None)))

    assert "app/profile.py:12 fetch_profile" == mine.value
    assert "app/profile.py:12 fetch_profile (in python3.11/pathlib.py:1013 Path.stat) ran in 1 of 1" in mine.detail
    assert "python3.11/pathlib.py:1013 Path.stat" == foreign.value


def test_a_starved_process_is_told_by_the_time_that_its_loop_waited_for_a_cpu(world: Callable[..., Any]) -> None:
    """By time: short waits between long calls are no starvation; where nothing tells, nothing is said."""
    known = evidence(world(**BLOCK))
    starved = with_episodes(known, (WORK, 0.01, 0.0, 0.108), (WORK, 0.01, 0.0, None))

    assert 0.9 == pytest.approx(value(event_loop.starved_share, starved))
    assert 0.0 == value(event_loop.starved_share, known)
    assert event_loop.starved_share(with_episodes(known, (WORK, 0.0, 0.0))).value is None
