"""Answers that are fetched later, from any worker, for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.degradation.results import ResultStore

SAID = {"sentiment": "positive", "confidence": 0.9, "latency_ms": 1.0, "degraded": True, "reason": "queue_full"}


class Time:
    """A clock that a test sets."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def opened(folder: Path, clock: Time, places: int = 8) -> ResultStore:
    """Return the store of one worker."""
    return ResultStore(folder / "rings" / "results", places, 60.0, clock)


def test_any_worker_gives_what_another_stored_and_says_when_it_is_not_yet_there(tmp_path: Path) -> None:
    """Two stores of one folder know the same."""
    clock = Time()
    one, two = opened(tmp_path, clock), opened(tmp_path, clock)
    number = one.accept()
    assert number is not None
    assert two.get(number) == "pending"
    one.put(number, SAID)
    assert [two.get(number), one.get(number)] == [SAID, SAID]
    assert (one.counts["accepted"], one.counts["stored"], two.counts["fetched"]) == (1, 1, 1)


def test_expired_is_told_from_unknown_even_when_the_file_is_gone(tmp_path: Path) -> None:
    """The id itself tells when it expired; nothing is left of the result."""
    clock = Time()
    one, two = opened(tmp_path, clock), opened(tmp_path, clock)
    number = one.accept()
    assert number is not None
    one.put(number, SAID)
    clock.now += 60
    assert two.get(number) == "expired"
    assert two.counts["expired"] == 1
    assert [path.name for path in (tmp_path / "rings" / "results").iterdir()] == ["key"]
    assert one.get(number) == "expired"


def test_id_that_was_changed_or_guessed_is_unknown(tmp_path: Path) -> None:
    """Another expiry, another length, a path, capital letters: none of them reaches the disk."""
    clock = Time()
    store = opened(tmp_path, clock)
    number = store.accept()
    assert number is not None
    later = number[:32] + f"{int(clock.now + 10_000):010x}" + number[42:]
    (tmp_path / "rings" / "results" / later).write_bytes(b"{}")
    for guess in (later, "0" * 66, number[:-1], number.upper(), "../key", "key", "", "é" * 66):
        assert store.get(guess) == "unknown"


def test_places_are_for_all_workers_and_come_back(tmp_path: Path) -> None:
    """What one worker holds leaves less to the others once they looked; after the time all are free."""
    clock = Time()
    one, two = opened(tmp_path, clock, 3), opened(tmp_path, clock, 3)
    assert [one.accept() is not None for _ in range(4)] == [True, True, True, False]
    assert two.accept() is None
    assert (one.counts["no_room"], two.counts["no_room"]) == (1, 1)
    clock.now += 61
    assert two.accept() is not None


def test_folder_and_files_are_private(tmp_path: Path) -> None:
    """Folders 0700, files 0600, and no text in them."""
    store = opened(tmp_path, Time())
    number = store.accept()
    assert number is not None
    store.put(number, SAID)
    folder = tmp_path / "rings" / "results"
    assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder)] == [0o700, 0o700]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_folder_of_others_gives_no_room_and_says_so(tmp_path: Path, caplog: Any) -> None:
    """A folder that others may enter is not used."""
    folder = tmp_path / "rings" / "results"
    folder.mkdir(parents=True, mode=0o755)
    folder.parent.chmod(0o700)
    folder.chmod(0o755)
    store = opened(tmp_path, Time())
    assert store.accept() is None
    assert "fetched later" in caplog.text


def test_result_that_cannot_be_stored_stays_pending_and_is_counted(tmp_path: Path) -> None:
    """One that is too large for its bound, for one."""
    store = opened(tmp_path, Time())
    number = store.accept()
    assert number is not None
    store.put(number, SAID | {"reason": "x" * 600})
    assert store.get(number) == "pending"
    assert store.counts["failed"] == 1


@pytest.mark.parametrize("length", [0, 31, 33])
def test_key_of_the_wrong_length_gives_no_room(tmp_path: Path, length: int) -> None:
    """A damaged key is not worked with."""
    assert opened(tmp_path, Time()).accept() is not None
    (tmp_path / "rings" / "results" / "key").write_bytes(b"x" * length)
    assert opened(tmp_path, Time()).accept() is None
