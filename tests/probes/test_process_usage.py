from __future__ import annotations

import errno
import os
import resource
import socket
import tempfile
import threading
from contextlib import suppress
from typing import Any

import psutil
import pytest

from probes.process_usage import ProcessUsage, kinds_of


def test_the_figures_are_this_process_s() -> None:
    """CPU, memory, threads and descriptors agree with what the system says elsewhere."""
    reading = ProcessUsage().reading()

    assert reading["fd_limit"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert reading["threads"] >= threading.active_count()
    assert 0 < reading["cpu_s"] <= sum(os.times()[:2]) + 0.1
    assert 1 << 20 < reading["rss_bytes"] <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 * 1.1


def test_an_open_descriptor_is_seen() -> None:
    """One more descriptor is one more in the reading."""
    usage = ProcessUsage()
    before = usage.reading()["fds"]
    fd = os.open(os.devnull, os.O_RDONLY)
    try:
        actual = usage.reading()["fds"]
    finally:
        os.close(fd)

    assert before + 1 == actual


def test_where_no_descriptor_is_left_it_says_so_and_goes_on() -> None:
    """/proc cannot be opened then: all are in use, it is counted, and memory is left out instead of 0."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    usage = ProcessUsage()
    before = usage.reading()
    ends: list[socket.socket] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before["fds"] + 40, hard))
        with suppress(OSError):
            while True:
                ends.append(socket.socket())
        # A process may hold numbers above its new limit: then there is less room than it seems.
        full = usage.reading()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for end in ends:
            end.close()
    after = usage.reading()

    assert (0, 1, 1) == (before["fd_refused"], full["fd_refused"], after["fd_refused"])
    assert full["fds"] == full["fd_limit"] == before["fds"] + 40
    assert "rss_bytes" not in full
    assert full["cpu_s"] >= before["cpu_s"] - 0.02
    assert len(ends) <= full["fd_kinds"]["socket"]
    assert "rss_bytes" in after


def test_the_kinds_are_told_once_half_of_the_limit_is_used() -> None:
    """With room for many nobody pays for the look."""
    used = ProcessUsage().reading()["fds"]

    assert "fd_kinds" not in ProcessUsage(limit=lambda: 10 * used).reading()
    assert sum(ProcessUsage(limit=lambda: used + 1).reading()["fd_kinds"].values()) >= 3


def test_any_other_error_is_the_callers() -> None:
    """Only a want of descriptors is told for what it is; the recorder counts the rest as a failure of the probe."""

    class Gone(psutil.Process):
        def num_fds(self) -> Any:
            raise OSError(errno.EIO, "no")

    with pytest.raises(OSError, match="no"):
        ProcessUsage(Gone()).reading()


def test_sockets_files_and_pipes_are_told_apart() -> None:
    """By what the descriptor is, without opening another."""
    before = kinds_of(256)
    with socket.socket(), tempfile.TemporaryFile():
        reader, writer = os.pipe()
        after = kinds_of(256)
        os.close(reader)
        os.close(writer)

    grown = {kind: after[kind] - before.get(kind, 0) for kind in ("socket", "file", "pipe")}
    assert {"socket": 1, "file": 1, "pipe": 2} == grown
