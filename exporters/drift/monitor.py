"""Compares what rows bring with the training's reference, feature by feature, and tells services what it found.

Source    the follower's rows, each once; the reference beside the model.
Cost      per batch of rows some array operations per feature; a check some 0.1 ms per feature, each few seconds.
Absent    without a reference `data_drift_up` is 0 and there is no score; a feature seen too seldom has none either.
Memory    constant: 32 features at most, each with a window and its part of the reference (`nbytes`).
Lost      at a restart the windows begin anew: they are no totals.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from exporters.drift.categories import StreamCategories
from exporters.drift.columns import answered, label_of, numbers_of, words_of
from exporters.drift.judge import Judge, Rules, State, confidence_weight
from exporters.drift.ks import StreamKS, kolmogorov_p
from exporters.drift.reference import Reference, ReferenceUnusable, load_reference
from exporters.gauges import Gauges
from exporters.rows import OpenRequest
from exporters.totals import Totals
from probes.reader import Header

__all__ = ["DriftMonitor", "Found"]

_log = logging.getLogger(__name__)

# A look at nearly the same window tells nothing new; a look counts once this share of the rules' rows has come since.
_NEW_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Found:
    """What the last look found of one feature.

    Attributes:
        effect: Effect size, 0..1; None where there is none.
        rows: Observations in the window.
        state: The verdict.
    """

    effect: float | None
    rows: int
    state: State


class _Feature:
    """One column's window and verdict."""

    def __init__(self, window: StreamKS | StreamCategories, judge: Judge) -> None:
        self.window = window
        self.judge = judge
        self.came = 0
        self.found = Found(None, 0, "few")

    def look(self, least_new: int) -> None:
        """Look again if enough came since the last look."""
        if self.came < least_new:
            return
        self.came = 0
        window = self.window
        if isinstance(window, StreamKS):
            effect = window.statistic()
            p_value = kolmogorov_p(effect, window.reference_size, window.size) if effect is not None else 1.0
        else:
            effect, p_value = window.effect(), window.p_value()
        self.found = Found(effect, window.size, self.judge.look(effect, p_value, window.size))


class DriftMonitor:
    """Takes rows as the follower reads them (a `Tap`).

    Args:
        path: The reference; it may come later, and is read anew when it changes, as after a training.
        window: Latest answered requests that count.
        rules: When a distance is called drift.
        seconds: Pause between two looks.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        window: int = 2000,
        rules: Rules | None = None,
        seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.note = "starting"
        self._window = window
        self._rules = rules or Rules()
        self._seconds = seconds
        self._clock = clock
        self._features: dict[str, _Feature] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked_at = float("-inf")
        self._load()

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and their parts of the reference."""
        return sum(feature.window.nbytes for feature in self._features.values())

    @property
    def found(self) -> dict[str, Found]:
        """Feature -> what the last look found."""
        return {label_of(column): feature.found for column, feature in self._features.items()}

    def offer(self, header: Header, rows: npt.NDArray[Any], strings: Sequence[str]) -> Totals:
        """Take new rows; adds nothing to the totals."""
        del header
        if self._features:
            chosen = answered(rows)
            for column, feature in self._features.items():
                if isinstance(feature.window, StreamKS):
                    values = numbers_of(chosen, column)
                    feature.window.extend(values)
                    feature.came += len(values)
                else:
                    words = words_of(chosen, strings, column)
                    feature.window.extend(words)
                    feature.came += len(words)
        return Totals()

    def offer_unfinished(self, header: Header, requests: Sequence[OpenRequest], ended_unix_ns: int) -> Totals:
        """Take nothing: requests that never ended were not answered."""
        del header, requests, ended_unix_ns
        return Totals()

    def look(self) -> bool:
        """Look at all features when it is time; returns whether it was."""
        now = self._clock()
        if now - self._looked_at < self._seconds:
            return False
        self._looked_at = now
        self._load()
        least_new = max(1, int(self._rules.rows * _NEW_SHARE))
        for column, feature in self._features.items():
            before = feature.found.state
            feature.look(least_new)
            self._say(label_of(column), before, feature.found)
        return True

    def gauges(self) -> Gauges:
        """Return the metrics; a feature without a score has no sample."""
        gauges: Gauges = {"data_drift_up": {(): 1.0 if self._features else 0.0}}
        judged = {name: one for name, one in self.found.items() if one.state != "few" and one.effect is not None}
        if judged:
            gauges["data_drift_score"] = {(name,): float(one.effect or 0.0) for name, one in judged.items()}
            gauges["data_drift_state"] = {(name,): float(one.state == "drift") for name, one in judged.items()}
        if self._features:
            gauges["data_drift_window_rows"] = {(name,): float(one.rows) for name, one in self.found.items()}
        return gauges

    def control(self) -> dict[str, float | str] | None:
        """Return what services write into their rows: largest score, its feature, weight; None while nothing is known.

        The weight is 1 unless a drift lasts.
        """
        scores = {name: one for name, one in self.found.items() if one.state != "few" and one.effect is not None}
        if not scores:
            return None
        # A drift goes before a larger distance that is none yet.
        name, worst = max(scores.items(), key=lambda item: (item[1].state == "drift", item[1].effect or 0.0))
        score = worst.effect or 0.0
        weight = confidence_weight(score) if worst.state == "drift" else 1.0
        return {"feature": name, "score": round(score, 6), "weight": round(weight, 6)}

    def _say(self, name: str, before: State, found: Found) -> None:
        """Log a drift's beginning and end."""
        if (found.state == "drift") != (before == "drift"):
            score = 0.0 if found.effect is None else found.effect
            word = "drifts from" if found.state == "drift" else "is again as in"
            _log.warning("%s %s the training: score %.3f over %d requests", name, word, score, found.rows)

    def _load(self) -> None:
        """Read the reference if it is new; what cannot be used is said once and leaves nothing to compare with."""
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            self._stamp, self._features, self.note = None, {}, f"no reference at {self.path}: run `inferdeck train`"
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._features = self._made_of(load_reference(self.path))
            self.note = f"on, {len(self._features)} features"
        # Whatever is wrong with a file costs the drift alone, never the exporter.
        except Exception as error:  # noqa: BLE001
            self._features, self.note = {}, f"off: {error}"
            _log.warning("drift is not looked at: %s", error)

    def _made_of(self, reference: Reference) -> dict[str, _Feature]:
        rules, count = self._rules, len(reference.numbers) + len(reference.categories)
        features: dict[str, _Feature] = {}
        try:
            for column, values in reference.numbers.items():
                features[column] = _Feature(StreamKS(values, self._window), Judge(rules, count))
            for column, counts in reference.categories.items():
                features[column] = _Feature(StreamCategories(counts, self._window), Judge(rules, count))
        except ValueError as error:
            raise ReferenceUnusable(f"{self.path}: {error}; run `inferdeck train`") from error
        return features
