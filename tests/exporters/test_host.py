from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

from exporters.host import HostSampler

Times = namedtuple("Times", "user system idle iowait guest guest_nice")


def test_the_share_is_a_difference_between_two_looks() -> None:
    """The first look has no share; the second one is busy time over all time, guest time not counted twice."""
    times = iter([Times(10, 0, 90, 0, 5, 0), Times(14, 1, 92, 3, 7, 0)])
    sampler = HostSampler(lambda: next(times), lambda: SimpleNamespace(available=4096))
    assert sampler.sample() == {"runtime_host_memory_available_bytes": {(): 4096.0}}
    # 10 more seconds, the 2 of guests being part of the 4 of users; 5 of them idle.
    assert sampler.sample()["runtime_host_cpu_ratio"] == {(): 0.5}


def test_too_short_a_time_keeps_the_last_share() -> None:
    """Between two ticks of the kernel's clock the share would be noise."""
    times = iter([Times(0, 0, 0, 0, 0, 0), Times(1, 0, 1, 0, 0, 0), Times(1.1, 0, 1, 0, 0, 0)])
    sampler = HostSampler(lambda: next(times), lambda: SimpleNamespace(available=1))
    shares = [sampler.sample().get("runtime_host_cpu_ratio") for _ in range(3)]
    assert shares == [None, {(): 0.5}, {(): 0.5}]


def test_the_real_machine_has_figures() -> None:
    """Psutil's own objects are understood."""
    sampler = HostSampler(shortest_seconds=0.0)
    sampler.sample()
    assert sampler.sample()["runtime_host_memory_available_bytes"][()] > 0
