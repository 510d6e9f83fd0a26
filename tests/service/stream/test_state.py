"""What was committed is there after a kill, wholly or not at all; damage is told from room and from other owners."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from service.stream.state import Changes, State, StateFailed, open_state
from service.stream.windows import Window


def commit(state: State, number: int) -> bytes:
    """Commit a batch and return the key of its one message."""
    totals = state.totals.copy()
    totals.count("messages:ok")
    key = state.seen_key(number, bytes([number]) * 8)
    state.commit(Changes({number: Window(number)}, [key], totals, {"a": number, "b": 2 * number}))
    return key


def test_everything_is_read_back(tmp_path: Path) -> None:
    """Windows, counts, positions, what was seen, and the key by which that is told."""
    state = State(tmp_path / "s")
    keys = [commit(state, number) for number in range(3)]
    secret = state.key
    state.close()
    again = State(tmp_path / "s")

    assert ({"a": 2, "b": 4}, 3, secret) == (again.positions, again.totals.counts["messages:ok"], again.key)
    assert [0, 1, 2] == sorted(again.windows)
    assert [True, True, True, False] == again.known([*keys, again.seen_key(9, b"x" * 8)])
    again.close()


def test_what_is_closed_dropped_or_gone_is_forgotten(tmp_path: Path) -> None:
    """The memory of messages ends with their window; the rest is kept."""
    state = State(tmp_path / "s")
    keys = [commit(state, number) for number in range(5)]
    state.commit(Changes({}, [], state.totals.copy(), {}, gone=["b"], closed=2, dropped=[0, 1]))
    state.close()
    again = State(tmp_path / "s")

    assert [False, False, False, True, True] == again.known(keys)
    assert ([2, 3, 4], {"a": 4}) == (sorted(again.windows), again.positions)
    again.close()


def test_a_second_owner_is_refused_and_nothing_is_put_aside(tmp_path: Path) -> None:
    """Or two processes would count the same messages."""
    state = State(tmp_path / "s")
    with pytest.raises(StateFailed) as caught:
        open_state(tmp_path / "s")
    state.close()

    assert "taken" == caught.value.reason
    assert not (tmp_path / "s.damaged").exists()


@pytest.mark.parametrize("how", ["zeros", "half", "gone"])
@pytest.mark.parametrize("part", ["CURRENT", "MANIFEST*", "*.sst"])
def test_a_damaged_state_is_put_aside_and_begun_anew(part: str, how: str, tmp_path: Path) -> None:
    """And that is said: a state that opens as an empty one is damaged as well."""
    path = tmp_path / "s"
    state = State(path)
    commit(state, 1)
    state.close()
    files = list(path.glob(part))
    assert files
    for file in files:
        content = file.read_bytes()
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(b"\0" * len(content) if how == "zeros" else content[: len(content) // 2])
    again, damage = open_state(path)

    assert damage is not None
    assert (1, {}, {}) == (again.totals.rebuilds, again.positions, again.windows)
    assert (tmp_path / "s.damaged").is_dir()
    commit(again, 2)
    again.close()


def test_damage_that_only_reading_finds_is_told(tmp_path: Path) -> None:
    """Blocks of data are not looked at when the state is opened."""
    path = tmp_path / "s"
    state = State(path)
    keys = []
    for number in range(100):
        key = state.seen_key(number, random.randbytes(8))
        keys.append(key)
        totals = state.totals.copy()
        state.commit(Changes({}, [key] + [state.seen_key(number, random.randbytes(8)) for _ in range(500)], totals, {}))
    state.close()
    largest = max(path.glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    # In the middle: what opening reads (identity, totals, windows) lies at the ends of the keys' order.
    for place in range(len(content) // 3, len(content) // 2, 97):
        content[place] ^= 0xFF
    largest.write_bytes(bytes(content))
    again = State(path)
    with pytest.raises(StateFailed) as caught:
        again.known(keys)
    again.close()

    assert "damaged" == caught.value.reason
