"""Measures window after window, learns the baseline, and names a kernel that is slower in two windows in a row."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from exporters.kernels.baseline import Baseline, BaselineStore
from exporters.kernels.reading import Absent, KernelSource, Window
from exporters.kernels.verdict import LIVE_RATIO, Judged, common_ratio, fastest, judge
from exporters.names_kernels import KERNEL_LIMIT

__all__ = ["KernelState", "KernelWatch", "Regression"]

_IN_A_ROW: Final = 2

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Regression:
    """A kernel that got slower.

    Attributes:
        kernel: Its name.
        ratio: Time over baseline, in the latest window.
        lowest_ratio: What that is at least.
        since_unix: When the first slow window was taken, seconds since 1970.
        before: Environment of the baseline.
        now: Environment of the window.
    """

    kernel: str
    ratio: float
    lowest_ratio: float
    since_unix: float
    before: dict[str, str]
    now: dict[str, str]


@dataclass(frozen=True)
class KernelState:
    """What is known after one window; replaced as a whole.

    Attributes:
        state: One of `names_kernels.SOURCE_STATES`.
        detail: Why there is nothing, for people.
        fastest_seconds: Kernel -> time; the KERNEL_LIMIT longest.
        judged: Kernel -> how it compares; empty while the baseline is learned.
        common: What all kernels slowed down by.
        regressions: Those that are named.
        took_seconds: What the window cost.
    """

    state: str
    detail: str = ""
    fastest_seconds: dict[str, float] = field(default_factory=dict)
    judged: dict[str, Judged] = field(default_factory=dict)
    common: float | None = None
    regressions: tuple[Regression, ...] = ()
    took_seconds: float | None = None


class KernelWatch:
    """One source, one model."""

    def __init__(
        self,
        source: KernelSource,
        store: BaselineStore,
        *,
        model: str = "model",
        threshold_ratio: float = LIVE_RATIO,
        interval_seconds: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Args:
            source: Measures.
            store: Keeps the baseline.
            model: Name of the model, not its version: a version with a slower kernel is compared with the one before.
            threshold_ratio: From which ratio on a kernel is slower.
            interval_seconds: Pause between two windows.
            clock: Seconds since 1970.
        """
        self.source = source
        self.state = KernelState("learning")
        self._store, self._model, self._threshold = store, model, threshold_ratio
        self._interval, self._clock = interval_seconds, clock
        # Kernel -> windows in a row that were slow, and when the first of them was. Bounded by KERNEL_LIMIT.
        self._slow: dict[str, tuple[int, float]] = {}
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Measure again and again until stopped."""
        self._thread = threading.Thread(target=self._run, name="kernel-canary", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, after the window that runs."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def look(self) -> None:
        """Measure one window and judge it."""
        began = time.perf_counter()
        found = self.source.measure()
        took = time.perf_counter() - began
        if isinstance(found, Absent):
            if found.state != self.state.state:
                _log.warning("no kernel times: %s", found.detail or found.state)
            # Two windows in a row means in a row: what was seen before the gap is not counted on.
            self._slow.clear()
            self.state = KernelState(found.state, found.detail, took_seconds=took)
            return
        longest = sorted(((fastest(times), kernel) for kernel, times in found.seconds.items()), reverse=True)
        current = {kernel: seconds for seconds, kernel in longest[:KERNEL_LIMIT]}
        self.state = self._judge(found, current, took)

    def _judge(self, window: Window, current: dict[str, float], took: float) -> KernelState:
        """Learn from a window, or compare it with what was learned."""
        now = self._clock()
        baseline = self._store.get(self._model, window.shape)
        if baseline is None or not baseline.complete:
            self._learn(baseline or Baseline(dict(window.environment), now), window, current)
            return KernelState("learning", fastest_seconds=current, took_seconds=took)
        resolution = window.resolution_seconds
        judged = judge(baseline, current, resolution_seconds=resolution, threshold_ratio=self._threshold)
        self._slow = {
            kernel: (self._slow.get(kernel, (0, now))[0] + 1, self._slow.get(kernel, (0, now))[1])
            for kernel, one in judged.items()
            if one.slower
        }
        named = tuple(
            Regression(
                kernel,
                judged[kernel].ratio,
                judged[kernel].lowest_ratio,
                since,
                baseline.environment,
                dict(window.environment),
            )
            for kernel, (count, since) in self._slow.items()
            if count >= _IN_A_ROW
        )
        self._tell(named)
        return KernelState("ok", "", current, judged, common_ratio(baseline, current, resolution), named, took)

    def _learn(self, baseline: Baseline, window: Window, current: dict[str, float]) -> None:
        baseline.add(current)
        try:
            self._store.put(self._model, window.shape, baseline)
        except OSError as error:
            _log.warning("kernel baseline not written (%s); a restart learns anew", error)

    def _tell(self, named: tuple[Regression, ...]) -> None:
        """Log what is new."""
        known = {one.kernel for one in self.state.regressions}
        for one in named:
            if one.kernel not in known:
                _log.warning(
                    "kernel %s takes %.2f times its baseline (at least %.2f); baseline %s, now %s",
                    *(one.kernel, one.ratio, one.lowest_ratio, one.before, one.now),
                )

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:  # noqa: BLE001 - one probe lost, said so; the exporter has other work
                _log.exception("the kernel canary failed")
                self.state = KernelState("error")
            if self._halt.wait(self._interval):
                return
