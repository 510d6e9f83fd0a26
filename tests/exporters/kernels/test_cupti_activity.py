"""CUPTI's records as a source of kernel times: absent where it is not there, added up by kernel and run where it is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from exporters.kernels.cupti_activity import CuptiActivity
from exporters.kernels.reading import Absent, Window
from exporters.names_kernels import SOURCE_STATES, SOURCES


class Cupti:
    """Stands for the module: its records come when it is flushed, as the real one's do."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10)

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.on: list[int] = []
        self.completed: Callable[[list[Any]], None] = lambda _records: None

    def launch(self, name: str, start: int, end: int) -> None:
        """Take note of a kernel, while it is on."""
        if self.on:
            self.pending.append(SimpleNamespace(name=name, start=start, end=end))

    def activity_register_callbacks(self, requested: Callable[[], tuple[int, int]], completed: Any) -> None:
        """Take the callbacks."""
        assert requested()[0] > 0
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        """Switch on."""
        self.on.append(kind)

    def activity_disable(self, kind: int) -> None:
        """Switch off."""
        self.on.remove(kind)

    def activity_flush_all(self, _flag: int) -> None:
        """Hand the records over."""
        records, self.pending = self.pending, []
        self.completed(records)

    def get_version(self) -> int:
        """Return its version."""
        return 130400


def test_without_cupti_python_there_is_no_time() -> None:
    """As on this machine: the module is not installed, which is said, and the callable is not run."""
    found = CuptiActivity(lambda: pytest.fail("ran"), shape="1x1").measure()

    assert Absent("not_installed", "cupti-python is missing") == found
    assert CuptiActivity.name in SOURCES
    assert found.state in SOURCE_STATES


def test_without_a_driver_there_is_no_time() -> None:
    """It imports without a card, and raises at its first call."""
    cupti = Cupti()

    def refuse(*_: object) -> None:
        raise RuntimeError("CUDA driver is not found")

    cupti.activity_enable = refuse  # type: ignore[assignment,method-assign]
    found = CuptiActivity(lambda: pytest.fail("ran"), shape="1x1", load=lambda: cupti).measure()

    assert Absent("no_device", "RuntimeError: CUDA driver is not found") == found


def test_kernels_are_added_up_by_name_in_each_run() -> None:
    """Two launches of one kernel are one time; one that is not in every run, or ends before it starts, has none."""
    cupti, calls = Cupti(), iter(range(100))

    def call() -> None:
        number = next(calls)
        cupti.launch("gemm", 1_000, 2_000 + number)
        cupti.launch("gemm", 5_000, 5_500)
        cupti.launch("norm" * 100, 0, 64)
        cupti.launch("backwards", 9, 3)
        if number % 2:
            cupti.launch("sometimes", 0, 10)

    found = CuptiActivity(call, shape="8x8", runs=4, load=lambda: cupti).measure()

    assert isinstance(found, Window)
    assert {"gemm", ("norm" * 100)[:120]} == set(found.seconds)
    # three runs to warm up are left out
    assert [1503, 1504, 1505, 1506] == [round(seconds * 1e9) for seconds in found.seconds["gemm"]]
    assert ("8x8", {"cupti": "130400"}, []) == (found.shape, found.environment, cupti.on)


def test_it_is_switched_off_whatever_the_callable_does() -> None:
    """A window that fails costs that window and leaves no profiler behind."""
    cupti = Cupti()

    def fail() -> None:
        raise ValueError("no input")

    with pytest.raises(ValueError, match="no input"):
        CuptiActivity(fail, shape="1x1", load=lambda: cupti).measure()
    assert [] == cupti.on
    assert (
        Absent("no_times", "no kernel was launched in each run")
        == CuptiActivity(lambda: None, shape="1x1", load=lambda: cupti).measure()
    )
