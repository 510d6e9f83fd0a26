"""A thread's wait for a CPU, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.run_queue import RunQueueWait


def test_the_second_figure_is_the_wait_in_nanoseconds(tmp_path: Path) -> None:
    """CPU time, wait, turns: the wait in seconds; each reading looks anew."""
    path = tmp_path / "schedstat"
    path.write_bytes(b"12798175 2500000000 10\n")
    queue = RunQueueWait(path)
    first = queue.seconds()
    path.write_bytes(b"12798175 3500000000 10\n")

    assert (2.5, 3.5) == (first, queue.seconds())
    queue.close()
    assert queue.seconds() is None


@pytest.mark.parametrize("content", [None, b"", b"5\n", b"1 two 3\n"])
def test_what_is_not_told_is_absent_and_never_zero(tmp_path: Path, content: bytes | None) -> None:
    """No file, or another form of it."""
    if content is not None:
        (tmp_path / "schedstat").write_bytes(content)
    queue = RunQueueWait(tmp_path / "schedstat")

    assert queue.seconds() is None
    queue.close()


def test_a_watch_that_is_dropped_keeps_no_descriptor(tmp_path: Path) -> None:
    """As in a forked child, where nobody closes it."""
    (tmp_path / "schedstat").write_bytes(b"1 2 3\n")
    before = len(list(Path("/proc/self/fd").iterdir()))
    queue = RunQueueWait(tmp_path / "schedstat")
    opened = len(list(Path("/proc/self/fd").iterdir()))
    del queue

    assert (before + 1, before) == (opened, len(list(Path("/proc/self/fd").iterdir())))
