from __future__ import annotations

import os
import resource
import threading

from probes.process_usage import ProcessUsage


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
