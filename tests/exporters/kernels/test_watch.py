"""A slower kernel is named within two windows; noise, a slower machine and a single odd window name none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporters.kernels.baseline import LEARN_WINDOWS, BaselineStore
from exporters.kernels.gauges import kernel_gauges
from exporters.kernels.reading import Absent, KernelSource, Window
from exporters.kernels.verdict import REPLAYED_RATIO
from exporters.kernels.watch import KernelWatch, Regression
from exporters.names_kernels import KERNEL_LIMIT
from tests.exporters.kernels.replays import KERNELS, Replayed

HOUR_OF_WINDOWS = 240  # one in 15 s


def watching(path: Path, source: KernelSource) -> KernelWatch:
    """A watch with the threshold of a GPU's own clocks, and a clock that stands."""
    return KernelWatch(source, BaselineStore(path / "kernels.json"), threshold_ratio=REPLAYED_RATIO, clock=lambda: 1e9)


def learned(path: Path, source: KernelSource) -> KernelWatch:
    """A watch whose baseline is complete."""
    watch = watching(path, source)
    for _ in range(LEARN_WINDOWS):
        watch.look()
    return watch


@pytest.mark.parametrize("seed", range(12))
def test_a_kernel_that_an_upgrade_made_slower_by_23_percent_is_named_within_two_windows(
    tmp_path: Path, seed: int
) -> None:
    """Requirements A3, the case told: one LayerNorm kernel after a CUDA upgrade; nobody else is named."""
    source = Replayed(seed)
    watch = learned(tmp_path, source)

    source.slower, source.driver = {"layer_norm": 1.23}, "590"
    watch.look()
    assert () == watch.state.regressions
    watch.look()

    regressions: tuple[Regression, ...] = watch.state.regressions
    (found,) = regressions
    assert ("layer_norm", {"driver": "580"}, {"driver": "590"}) == (found.kernel, found.before, found.now)
    assert 1.23 == pytest.approx(found.ratio, rel=0.08)
    assert 1.0 < found.lowest_ratio < found.ratio


@pytest.mark.parametrize("seed", range(6))
def test_an_hour_of_the_same_names_nobody(tmp_path: Path, seed: int) -> None:
    """Run against run, with the noise of a GPU that others use too."""
    watch = learned(tmp_path, Replayed(100 + seed))

    named = set()
    for _ in range(HOUR_OF_WINDOWS):
        watch.look()
        named |= {one.kernel for one in watch.state.regressions}

    assert set() == named


def test_a_machine_on_which_everything_is_slower_is_no_kernel_s_fault(tmp_path: Path) -> None:
    """A throttled clock moves all kernels: that is told as such, and the kernel that is slower still is found in it."""
    source = Replayed(7)
    watch = learned(tmp_path, source)

    source.slower = dict.fromkeys(KERNELS, 1.5)
    for _ in range(4):
        watch.look()
    assert () == watch.state.regressions
    assert 1.5 == pytest.approx(watch.state.common, rel=0.1)

    source.slower["gelu"] = 1.5 * 1.4
    watch.look()
    watch.look()
    regressions: tuple[Regression, ...] = watch.state.regressions
    assert ["gelu"] == [one.kernel for one in regressions]


def test_one_odd_window_names_nobody(tmp_path: Path) -> None:
    """Two in a row are asked for: slow, as before, slow again is not in a row."""
    source = Replayed(3)
    watch = learned(tmp_path, source)

    for slower in ({"attention": 1.6}, {}, {"attention": 1.6}):
        source.slower = dict(slower)
        watch.look()
        assert () == watch.state.regressions


def test_a_baseline_outlives_a_restart_and_a_recovery_is_told(tmp_path: Path) -> None:
    """A new process judges by what the old one learned, at once; a kernel that is mended is no longer named."""
    learned(tmp_path, Replayed(5))
    source = Replayed(6, {"softmax": 1.3})
    watch = watching(tmp_path, source)

    watch.look()
    watch.look()
    assert ["softmax"] == [one.kernel for one in watch.state.regressions]
    assert 0o600 == (tmp_path / "kernels.json").stat().st_mode & 0o777

    source.slower = {}
    watch.look()
    assert () == watch.state.regressions


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": "other"}',
        b'{"format": "inferdeck-kernels/1", "baselines": {"a b": {"fastest_seconds": {"k": [-1]}}}}',
        json.dumps(
            {
                "format": "inferdeck-kernels/1",
                "baselines": {"a b": {"environment": {}, "since_unix": 1, "fastest_seconds": {"k": [float("nan")]}}},
            }
        ).encode(),
        b"[" * 100_000,
    ],
)
def test_a_baseline_that_makes_no_sense_is_learned_anew(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there, the watch learns and goes on."""
    (tmp_path / "kernels.json").write_bytes(content)

    watch = learned(tmp_path, Replayed(1))
    watch.look()

    assert "ok" == watch.state.state


def test_a_disk_that_refuses_costs_the_file_not_the_watch(tmp_path: Path) -> None:
    """The baseline is kept in memory, and judging goes on."""
    watch = KernelWatch(Replayed(1), BaselineStore(tmp_path / "gone" / "kernels.json"))
    for _ in range(LEARN_WINDOWS + 1):
        watch.look()

    assert "ok" == watch.state.state


class Scripted:
    """A source that gives what it is told."""

    name = "ort_profile"

    def __init__(self) -> None:
        self.next: Window | Absent = Absent("no_model", "no model at x")

    def measure(self) -> Window | Absent:
        """What was set."""
        return self.next


def test_without_times_there_is_an_up_that_is_0_and_no_time(tmp_path: Path) -> None:
    """Absence is a state with a reason; the last window's times are not shown again."""
    source = Scripted()
    watch = watching(tmp_path, source)
    source.next = Window({"a": (1e-4,) * 30}, "32x256", {}, 1e-6)
    watch.look()
    assert {("a",): 1e-4} == kernel_gauges(watch.state, source.name)["model_kernel_seconds"]

    source.next = Absent("not_installed", "onnxruntime is missing")
    watch.look()
    gauges = kernel_gauges(watch.state, source.name)

    assert {("ort_profile",): 0.0} == gauges["model_kernel_probe_up"]
    assert [("not_installed",)] == [key for key, value in gauges["model_kernel_probe_state"].items() if value]
    assert {} == gauges["model_kernel_seconds"]


def test_kernels_are_bounded_to_those_with_most_time(tmp_path: Path) -> None:
    """A graph of 200 nodes gives KERNEL_LIMIT series."""
    source = Scripted()
    source.next = Window({f"n{place}": ((place + 1) * 1e-5,) * 30 for place in range(200)}, "32x256", {}, 1e-6)
    watch = watching(tmp_path, source)

    watch.look()

    assert {f"n{place}" for place in range(200 - KERNEL_LIMIT, 200)} == set(watch.state.fastest_seconds)


def test_times_of_a_few_steps_are_not_judged(tmp_path: Path) -> None:
    """A kernel that reads 2 us in steps of 1 us would be 1.5 times slower at the next step."""
    source = Scripted()
    source.next = Window({"short": (2e-6,) * 30, "long": (5e-5,) * 30}, "1x32", {}, 1e-6)
    watch = learned(tmp_path, source)

    source.next = Window({"short": (3e-6,) * 30, "long": (5e-5,) * 30}, "1x32", {}, 1e-6)
    watch.look()
    watch.look()

    assert {"long"} == set(watch.state.judged)
    assert () == watch.state.regressions
