"""What is decided about time: out of order, late, from the future, twice; and when a window is complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.stream.message import Message
from service.stream.process import Outcome, Policy, process
from service.stream.state import State
from tests.service.stream._queries import NOON_S, message, raw

ALL_READ: frozenset[str] = frozenset()
MINUTE = NOON_S // 60


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """Open a fresh state."""
    opened = State(tmp_path / "s")
    yield opened
    opened.close()


def run(
    state: State,
    messages: list[Message],
    now_s: float = NOON_S,
    behind: frozenset[str] | None = frozenset({"0"}),
) -> Outcome:
    """Process a batch and commit it."""
    outcome = process(messages, state, Policy(), now_ns=int(now_s * 1e9), behind=behind)
    state.commit(outcome.changes)
    return outcome


def sent(*at_s: float) -> list[Message]:
    """Return a message for each time."""
    return [message(raw(number, second), number) for number, second in enumerate(at_s)]


def reasons(outcome: Outcome) -> list[str]:
    """Return why there are dead letters."""
    return [letter.reason for letter in outcome.letters]


def test_out_of_order_messages_fall_into_their_own_windows(state: State) -> None:
    """By their own time, whatever came before."""
    run(state, sent(NOON_S, NOON_S - 180, NOON_S + 40, NOON_S - 60, NOON_S - 180))

    assert {MINUTE - 3: 2, MINUTE - 1: 1, MINUTE: 1, MINUTE + 1: 1} == {
        minute: window.messages for minute, window in state.windows.items()
    }


def test_a_window_is_complete_by_the_grace_behind_its_end(state: State) -> None:
    """By the messages' time while more is to be read; a second before it is not."""
    end = (MINUTE + 1) * 60
    first = run(state, sent(NOON_S, end + 9), end + 9)
    second = run(state, sent(end + 10), end + 10)

    assert ([], [MINUTE]) == ([one.minute for one in first.completed], [one.minute for one in second.completed])
    assert (1, 1) == (state.windows[MINUTE].revision, state.totals.counts["windows:on_time"])


def test_the_last_window_is_complete_by_the_clock_when_all_is_read(state: State) -> None:
    """Or the last minute of the day would wait for the next morning."""
    end = (MINUTE + 1) * 60
    run(state, sent(NOON_S))

    assert [] == run(state, [], end + 19, ALL_READ).completed
    assert [MINUTE] == [one.minute for one in run(state, [], end + 20, ALL_READ).completed]


def test_a_part_of_which_nothing_was_read_yet_holds_everything_up(state: State) -> None:
    """It may hold what is older than anything; and so does one that is behind the others."""
    both, end = frozenset({"0", "1"}), (MINUTE + 1) * 60
    assert [] == run(state, sent(NOON_S, end + 3600), end + 3600, both).completed
    late = message(raw(7, NOON_S + 1), 1, "1")

    assert ([], 2) == (reasons(run(state, [late], end + 3600, both)), state.windows[MINUTE].messages)
    assert [MINUTE] == [
        one.minute for one in run(state, [message(raw(8, end + 20), 2, "1")], end + 3600, both).completed
    ]


def test_a_late_message_corrects_its_window(state: State) -> None:
    """Within the hour; the revision says that the window was given out before."""
    run(state, sent(NOON_S, NOON_S + 600), NOON_S + 600)
    outcome = run(state, [message(raw(9, NOON_S + 1), 9)], NOON_S + 600)

    assert [(MINUTE, 2, 2)] == [(one.minute, one.revision, one.messages) for one in outcome.completed]
    assert 1 == state.totals.counts["windows:corrected"]


def test_what_is_late_by_an_hour_is_a_dead_letter(state: State) -> None:
    """An hour behind the end of its window, by the messages' time; a second less and it is counted."""
    end = (MINUTE + 1) * 60
    run(state, sent(end + 3599), end + 3599)
    assert [] == reasons(run(state, [message(raw(1, NOON_S), 1)], end + 3599))
    run(state, [message(raw(2, end + 3600), 2)], end + 3600)

    assert ["late"] == reasons(run(state, [message(raw(3, NOON_S), 3)], end + 3600))
    assert 1 == state.windows[MINUTE].messages


def test_after_a_pause_of_hours_nothing_is_late(state: State) -> None:
    """The stream's own time stood still; this machine's clock closes no window."""
    run(state, sent(NOON_S))
    run(state, [], NOON_S + 4 * 3600, ALL_READ)

    assert [] == reasons(run(state, [message(raw(5, NOON_S + 30), 5)], NOON_S + 4 * 3600))


def test_a_message_from_the_future_is_a_dead_letter_and_moves_nothing(state: State) -> None:
    """One wrong clock would else close the windows of all others; a minute ahead is none."""
    outcome = run(state, sent(NOON_S + 60, NOON_S + 61, NOON_S + 86_400 * 365))

    assert ["future", "future"] == reasons(outcome)
    assert {"0": (NOON_S + 60) * 10**9} == state.totals.marks
    assert [] == reasons(run(state, [message(raw(9, NOON_S - 1800), 9)]))


def test_a_duplicate_counts_once(state: State) -> None:
    """In one batch, in the next, from another part of the source, and after its window was completed."""
    first = message(raw(1, NOON_S), 1)
    run(state, [first, first._replace(position=2)])
    run(state, [message(raw(1, NOON_S), 1, "1")])
    run(state, sent(NOON_S + 600)[:1], NOON_S + 600)
    run(state, [first._replace(position=9)], NOON_S + 600)

    assert 1 == state.windows[MINUTE].messages
    assert (2, 3) == (state.totals.counts["messages:ok"], state.totals.counts["messages:duplicate"])


def test_a_duplicate_whose_window_is_closed_is_late_and_not_counted(state: State) -> None:
    """Its memory is gone by then; it could not be told any more."""
    run(state, sent(NOON_S))
    run(state, [message(raw(2, NOON_S + 7200), 2)], NOON_S + 7200)

    assert ["late"] == reasons(run(state, [message(raw(0, NOON_S), 3)], NOON_S + 7200))
    assert [False] == state.known([state.seen_key(MINUTE, b"12345678")])


def test_the_same_batch_has_the_same_outcome(state: State) -> None:
    """What could not be written is done again: nothing was changed meanwhile, and letters have the same ids."""
    batch = [message(raw(1), 1), message(b"no", 2), message(raw(1), 3)]
    once, again = (process(batch, state, Policy(), now_ns=NOON_S * 10**9, behind=ALL_READ) for _ in range(2))

    assert once.changes.totals == again.changes.totals
    assert [letter.id for letter in once.letters] == [letter.id for letter in again.letters]
    assert {} == state.windows


def test_old_windows_are_dropped_beyond_what_is_kept(state: State) -> None:
    """The oldest first, and none that can still be corrected."""
    policy = Policy(keep_windows=3, late_seconds=60)
    for number in range(8):
        at = NOON_S + 60 * number
        outcome = process([message(raw(number, at), number)], state, policy, now_ns=at * 10**9, behind=frozenset({"0"}))
        state.commit(outcome.changes)

    assert [MINUTE + 5, MINUTE + 6, MINUTE + 7] == sorted(state.windows)


def test_a_step_that_raises_is_counted_and_its_message_too(state: State) -> None:
    """Somebody else's code does not stop the stream."""

    def broken(_read: object) -> None:
        raise RuntimeError("no")

    outcome = process([message(raw(1))], state, Policy(), now_ns=NOON_S * 10**9, behind=ALL_READ, steps=[broken])
    state.commit(outcome.changes)

    assert {"steps:failed": 1, "messages:ok": 1} == state.totals.counts
