"""Metrics of the stream of user queries: messages, dead letters, windows of a minute, and how far it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exporters.metric import Kind, Metric

__all__ = [
    "STREAM",
    "STREAM_LETTER_REASONS",
    "STREAM_MESSAGE_RESULTS",
    "STREAM_PROBLEMS",
    "STREAM_SHIFTS",
    "STREAM_WINDOW_RESULTS",
]

# Words of service/stream; held equal by tests/service/stream/test_stream_metrics.py.
STREAM_MESSAGE_RESULTS: Final = ("ok", "duplicate", "dead_letter")
STREAM_LETTER_REASONS: Final = ("too_large", "not_json", "schema", "late", "future")
STREAM_WINDOW_RESULTS: Final = ("on_time", "late", "corrected")
STREAM_PROBLEMS: Final = ("state_full", "state_damaged", "state_other", "sink")
STREAM_SHIFTS: Final = ("length", "non_ascii", "language", "device")


def _metric(name: str, kind: Kind, unit: str, text: str, labels: Mapping[str, tuple[str, ...]] | None = None) -> Metric:
    return Metric(name, kind, unit, text, labels=labels or {}, source="stream", job="stream")


STREAM: Final = (
    _metric(
        "stream_messages_total",
        "counter",
        "messages",
        "Messages that are done, by what came of them.",
        {"result": STREAM_MESSAGE_RESULTS},
    ),
    _metric(
        "stream_dead_letters_total",
        "counter",
        "messages",
        "Messages that are counted in no window, by why.",
        {"reason": STREAM_LETTER_REASONS},
    ),
    _metric(
        "stream_windows_total",
        "counter",
        "windows",
        "Windows that were completed, by whether that was within a minute of when it could be, and corrections.",
        {"result": STREAM_WINDOW_RESULTS},
    ),
    _metric("stream_step_failures_total", "counter", "calls", "Calls of the user's own steps that raised."),
    _metric(
        "stream_errors_total",
        "counter",
        "tries",
        "Times that a batch could not be carried through at once, by why.",
        {"reason": STREAM_PROBLEMS},
    ),
    _metric("stream_state_rebuilds_total", "counter", "rebuilds", "Times that a damaged state was begun anew."),
    _metric("stream_source_up", "gauge", "bool", "Whether the source of messages answers."),
    _metric("stream_stands_state", "gauge", "state", "1 while the stream does not go on."),
    _metric(
        "stream_waiting_messages",
        "gauge",
        "messages",
        "Messages that wait to be read; of files by the mean size of those that were read.",
    ),
    _metric(
        "stream_lag_seconds",
        "gauge",
        "seconds",
        "Age of the latest message that was done, by when the source took it, while others wait; else 0.",
    ),
    _metric(
        "stream_window_end_timestamp_seconds",
        "gauge",
        "seconds",
        "End of the latest complete window with messages.",
    ),
    _metric("stream_window_messages", "gauge", "messages", "Messages of that window."),
    _metric("stream_window_length_characters", "gauge", "characters", "Average length of its questions."),
    _metric("stream_window_low_quality_ratio", "gauge", "ratio", "Share of them of low quality."),
    _metric("stream_window_personal_ratio", "gauge", "ratio", "Share of them in which personal data was masked."),
    _metric("stream_window_wide_ratio", "gauge", "ratio", "Share of them with full-width letters or digits."),
    _metric(
        "stream_window_shift_ratio",
        "gauge",
        "ratio",
        "How far that window is from the hour before it, 0 to 1, by feature; absent for few messages.",
        {"feature": STREAM_SHIFTS},
    ),
)
"""Those of a window are absent until one is complete; lag and waiting messages while the source does not answer."""
