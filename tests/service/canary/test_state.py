"""The shared state outlives workers; two that decide at once decide once; what cannot be read asks for nothing."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from service.canary.state import CanaryStore, StateUnusable


def test_what_is_set_is_read_by_another_worker_after_a_restart(tmp_path: Path) -> None:
    """Share and model are in the file, which is this user's alone."""
    CanaryStore(tmp_path / "canary").set(share=0.1, model="/models/v2")
    store = CanaryStore(tmp_path / "canary")
    found = store.begin(None, 0.0)
    assert ("/models/v2", 0.1, "operator") == (found.model, found.share, found.by)
    assert store.path is not None
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_two_workers_that_take_back_at_once_do_it_once(tmp_path: Path) -> None:
    """Eight threads with stores of their own decide about one generation; one does it, and it counts once."""
    generation = CanaryStore(tmp_path).set(share=0.1, model="m").generation
    start, done = threading.Barrier(8), []

    def decide() -> None:
        start.wait(20)
        done.append(CanaryStore(tmp_path).roll_back("flips", "2 of 3", generation))

    threads = [threading.Thread(target=decide) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    found = CanaryStore(tmp_path).read()
    assert found is not None
    assert [False] * 7 + [True] == sorted(done)
    assert (0.0, 1, True) == (found.share, found.rollbacks["flips"], found.rolled_back)


def test_a_rollback_does_not_take_back_what_was_set_meanwhile(tmp_path: Path) -> None:
    """A decision about an older generation does nothing."""
    store = CanaryStore(tmp_path)
    old = store.set(share=0.1, model="m").generation
    store.set(share=0.2)
    assert not store.roll_back("errors", "", old)
    found = store.read()
    assert found is not None
    assert found.share == 0.2


def test_a_rollback_outlives_a_restart_with_the_same_settings_and_not_new_ones(tmp_path: Path) -> None:
    """Settings that are as they were change nothing; others are a new roll-out, and rollbacks are still counted."""
    store = CanaryStore(tmp_path)
    store.begin("v2", 0.1)
    store.roll_back("latency", "slow")
    assert CanaryStore(tmp_path).begin("v2", 0.1).share == 0.0
    again = CanaryStore(tmp_path).begin("v3", 0.1)
    assert ("v3", 0.1, 1) == (again.model, again.share, again.rollbacks["latency"])


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{" * 5000,
        json.dumps({"format": "inferdeck-canary/1", "share": 2}),
        json.dumps({"format": "inferdeck-canary/2", "share": 0.1}),
        "x" * 70_000,
    ],
)
def test_a_file_that_is_none_is_said_in_one_line(tmp_path: Path, content: str) -> None:
    """Damaged, foreign, deep or endless: refused, not guessed at."""
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(StateUnusable) as told:
        CanaryStore(tmp_path).read()
    assert "\n" not in str(told.value)
