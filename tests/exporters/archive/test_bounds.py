from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.archive.bounds import Holding, Limits, check_room, keep_bounds

SECOND = 10**9


def segment(folder: Path, start_s: int, size: int = 1000) -> Path:
    """A file that is named as a segment of ten seconds."""
    path = folder / f"{start_s * SECOND:019d}-{(start_s + 10) * SECOND:019d}-{start_s:08x}.npz"
    path.write_bytes(b"x" * size)
    return path


def test_what_is_left_is_told(tmp_path: Path) -> None:
    """Bytes, and the oldest request; other files are nobody's business here."""
    (tmp_path / "notes.txt").write_bytes(b"mine")
    assert Holding(0, None) == keep_bounds(tmp_path, Limits(), 0)
    segment(tmp_path, 500)
    segment(tmp_path, 700)
    assert Holding(2000, 500 * SECOND) == keep_bounds(tmp_path, Limits(), 800 * SECOND)
    assert (tmp_path / "notes.txt").exists()


@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(1, 500), max_size=12), room=st.integers(0, 2000), age=st.integers(1, 100))
def test_the_kept_ones_are_the_latest_that_fit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], room: int, age: int
) -> None:
    """Whatever the sizes: within both bounds, and nothing older than something removed is kept."""
    folder = tmp_path_factory.mktemp("archive")
    paths = [segment(folder, 100 + 10 * number, size) for number, size in enumerate(sizes)]
    now = (100 + 10 * len(sizes)) * SECOND
    keep_bounds(folder, Limits(keep_bytes=room, keep_seconds=age), now)
    kept = [path.exists() for path in paths]
    assert sorted(kept) == kept
    assert sum(size for size, there in zip(sizes, kept, strict=True) if there) <= room
    assert all(now - (110 + 10 * number) * SECOND <= age * SECOND for number, there in enumerate(kept) if there)
    young = [number for number in range(len(sizes)) if now - (110 + 10 * number) * SECOND <= age * SECOND]
    if sum(sizes[number] for number in young) <= room:
        assert young == [number for number, there in enumerate(kept) if there]


@pytest.mark.parametrize(
    ("total", "free", "refused"),
    [
        (1 << 40, 64 << 20, False),
        (1 << 40, (64 << 20) - 1, True),
        (100 << 20, 5 << 20, False),
        (100 << 20, 4 << 20, True),
    ],
)
def test_a_disk_s_last_bytes_are_not_taken(tmp_path: Path, total: int, free: int, refused: bool) -> None:
    """64 MiB of a large disk, 5% of a small one."""
    if refused:
        with pytest.raises(OSError, match="left to others"):
            check_room(tmp_path, lambda _folder: (total, 0, free))
    else:
        check_room(tmp_path, lambda _folder: (total, 0, free))
