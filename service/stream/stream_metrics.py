"""What the stream shows of itself (job `stream`); names and labels are those of exporters/names_stream.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.stream.consumer import View
from service.stream.message import LETTER_REASONS
from service.stream.windows import PERSONAL, SHIFTS, WIDE, Window, shift_between

__all__ = ["BASELINE_WINDOWS", "LEAST_MESSAGES", "MESSAGE_RESULTS", "PROBLEMS", "WINDOW_RESULTS", "render"]

MESSAGE_RESULTS: Final = ("ok", "duplicate", "dead_letter")
WINDOW_RESULTS: Final = ("on_time", "late", "corrected")
PROBLEMS: Final = ("state_full", "state_damaged", "state_other", "sink")
BASELINE_WINDOWS: Final = 60
"""Complete windows before the latest one with which that is compared."""
LEAST_MESSAGES: Final = 200
"""Of fewer messages a distance is mostly noise, 1.36 / sqrt(200): as in exporters/drift/judge.py."""


class _Once(Collector):
    def __init__(self, view: View, errors: Mapping[str, int]) -> None:
        self._view, self._errors = view, errors

    def collect(self) -> Iterable[Metric]:
        view, counts = self._view, self._view.totals.counts
        yield _counter(
            "stream_messages", "Messages that are done, by what came of them.", "result", MESSAGE_RESULTS, counts
        )
        yield _counter(
            "stream_dead_letters", "Messages that are counted in no window, by why.", "reason", LETTER_REASONS, counts
        )
        yield _counter(
            "stream_windows",
            "Windows that were completed, by whether that was within a minute of when it could be, and corrections.",
            "result",
            WINDOW_RESULTS,
            counts,
        )
        yield CounterMetricFamily(
            "stream_step_failures", "Calls of the user's own steps that raised.", counts.get("steps:failed", 0)
        )
        problems = CounterMetricFamily(
            "stream_errors", "Times that a batch could not be carried through at once, by why.", labels=["reason"]
        )
        for name in PROBLEMS:
            problems.add_metric([name], self._errors.get(name.replace("_", ":", 1), 0))
        yield problems
        yield CounterMetricFamily(
            "stream_state_rebuilds", "Times that a damaged state was begun anew.", view.totals.rebuilds
        )
        yield from _gauges(view)
        yield from _latest(view.windows)


def _counter(name: str, text: str, label: str, values: Iterable[str], counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    kind = {"stream_messages": "messages", "stream_dead_letters": "letters", "stream_windows": "windows"}[name]
    for value in values:
        family.add_metric([value], counts.get(f"{kind}:{value}", 0))
    return family


def _gauges(view: View) -> Iterable[Metric]:
    yield GaugeMetricFamily("stream_source_up", "Whether the source of messages answers.", float(view.source_up))
    yield GaugeMetricFamily("stream_stands_state", "1 while the stream does not go on.", float(bool(view.problem)))
    if view.source_up:
        yield GaugeMetricFamily(
            "stream_waiting_messages",
            "Messages that wait to be read; of files by the mean size of those that were read.",
            view.waiting,
        )
        yield GaugeMetricFamily(
            "stream_lag_seconds",
            "Age of the latest message that was done, by when the source took it, while others wait; else 0.",
            view.lag_seconds,
        )


def _latest(windows: Iterable[Window]) -> Iterable[Metric]:
    """Return what the latest complete window says, and how far it is from those before it; nothing without one."""
    complete = [window for window in windows if window.revision and window.messages]
    if not complete:
        return
    latest = complete[-1]
    for name, text, value in (
        (
            "stream_window_end_timestamp_seconds",
            "End of the latest complete window with messages.",
            latest.end_ns / 1e9,
        ),
        ("stream_window_messages", "Messages of that window.", latest.messages),
        ("stream_window_length_characters", "Average length of its questions.", latest.mean_length),
        ("stream_window_low_quality_ratio", "Share of them of low quality.", latest.low_quality / latest.messages),
        ("stream_window_personal_ratio", "Share of them in which personal data was masked.", latest.share(PERSONAL)),
        ("stream_window_wide_ratio", "Share of them with full-width letters or digits.", latest.share(WIDE)),
    ):
        yield GaugeMetricFamily(name, text, value)
    shifts = GaugeMetricFamily(
        "stream_window_shift_ratio",
        "How far that window is from the hour before it, 0 to 1, by feature; absent for few messages.",
        labels=["feature"],
    )
    before = complete[-1 - BASELINE_WINDOWS : -1]
    for feature, place in SHIFTS.items():
        known = [sum(column) for column in zip(*(window.sums[place] for window in before), strict=True)]
        if sum(known) >= LEAST_MESSAGES <= latest.messages:
            ordered = feature in ("length", "non_ascii")
            shifts.add_metric([feature], shift_between(latest.sums[place], known, ordered=ordered) or 0.0)
    yield shifts


def render(view: View, errors: Mapping[str, int]) -> bytes:
    """Return the exposition in Prometheus' text format.

    Args:
        view: What the consumer shows.
        errors: Its counts of failures, by place and reason.
    """
    registry = CollectorRegistry()
    registry.register(_Once(view, errors))
    return generate_latest(registry)
