"""Feature records out of real rings and a real archive: every answered row once, in small columns."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from exporters.feature_records import MOST_WORDS, OTHER, _bounded, derived, read_features
from inferdeck.bench.flight import write_flight

COUNT = 36_000


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rings and an archive that hold most rows both."""
    folder = tmp_path_factory.mktemp("flight")
    write_flight(folder / "rings", folder / "archive", COUNT)
    return folder


def test_every_row_is_read_once(flight: Path) -> None:
    """Rows that are in a ring and in the archive count once, in order of time."""
    found = read_features(flight / "rings", flight / "archive", 0, time.time_ns())

    assert COUNT == len(found)
    assert not found.cut
    assert (np.diff(found.at) >= 0).all()
    assert {f"7.{n}.0" for n in range(8)} == set(found.words["client_release"].words)
    assert {0} == set(found.losses.values())
    lengths = found.numbers["input_length"]
    assert 5 <= lengths.min() <= lengths.max() < 900
    assert np.isnan(found.numbers["digit_ratio"]).all()


def test_the_archive_alone_has_what_left_the_rings(flight: Path, tmp_path: Path) -> None:
    """Without rings the sealed rows are there; without either there are none, and no error."""
    archived = read_features(tmp_path / "none", flight / "archive", 0, time.time_ns())
    nothing = read_features(tmp_path / "none", tmp_path / "nowhere", 0, time.time_ns())

    assert 0 < len(archived) < COUNT
    assert 0 == len(nothing)


def test_the_latest_are_taken_when_not_all_fit(flight: Path) -> None:
    """A bound cuts off old rows and says so."""
    found = read_features(flight / "rings", flight / "archive", 0, time.time_ns(), most=1000)

    assert len(found) <= 1000
    assert found.cut


def test_a_window_leaves_the_rest_out(flight: Path) -> None:
    """Only starts within the window count."""
    whole = read_features(flight / "rings", flight / "archive", 0, time.time_ns())
    middle = int(whole.at[COUNT // 2] * 1e9)

    late = read_features(flight / "rings", flight / "archive", middle, time.time_ns())

    assert abs(len(late) - COUNT // 2) < 20


def test_a_file_that_is_no_ring_costs_itself_alone(flight: Path, tmp_path: Path) -> None:
    """Damage is counted."""
    (tmp_path / "0123abcd-0123456789abcdef.ring").write_bytes(b"no ring at all")

    found = read_features(tmp_path, flight / "archive", 0, time.time_ns())

    assert 1 == found.losses["unreadable"]
    assert len(found) > 0


def test_many_words_are_bounded() -> None:
    """Beyond the most frequent ones all words are one."""
    places = np.concatenate([np.arange(200), np.full(50, 7)]).astype(np.int32)

    found = _bounded(places, [f"w{n}" for n in range(200)])

    assert MOST_WORDS + 1 == len(found.words)
    assert OTHER == found.words[-1]
    assert "w7" == found.words[found.places[-1]]


def test_length_and_time_make_buckets_and_hours() -> None:
    """Lengths follow the objectives' buckets; an absent one is unknown."""
    found = derived(np.array([0.0, 3600.0, 90_000.0, 7200.0]), np.array([99, 100, 501, np.nan], dtype=np.float32))

    assert ["short", "medium", "long", "unknown"] == [
        found["input_bucket"].words[place] for place in found["input_bucket"].places
    ]
    assert [0, 1, 1, 2] == found["hour"].places.tolist()
