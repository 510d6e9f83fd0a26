"""What the stream shows has the names and labels of the one list, and nothing is 0 that is not known."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from exporters import names_stream
from exporters.names_stream import STREAM
from service.stream import stream_metrics
from service.stream.consumer import View
from service.stream.features import features_of
from service.stream.message import LETTER_REASONS
from service.stream.state import Totals
from service.stream.windows import SHIFTS, Window


def window(minute: int, texts: list[str]) -> Window:
    """Return a complete window."""
    made = Window(minute, revision=1, completed_ns=1)
    for text in texts:
        made.add(features_of(text), "web")
    return made


def samples(view: View, errors: dict[str, int] | None = None) -> dict[str, dict[str, float]]:
    """Return name -> label value -> value, as Prometheus reads it."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(stream_metrics.render(view, errors or {}).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})["".join(sample.labels.values())] = sample.value
    return found


FULL = View(
    Totals({"messages:ok": 5, "letters:late": 2, "windows:late": 1, "steps:failed": 3}, {}, 0, 1),
    (window(1, ["short"] * 300), window(2, ["x" * 200] * 150 + ["字字字"] * 150)),
    source_up=True,
    waiting=12.0,
    lag_seconds=1.5,
    problem="",
)


def test_words_are_those_of_the_one_list() -> None:
    """`exporters` may not import the service, nor the service `exporters`."""
    assert names_stream.STREAM_MESSAGE_RESULTS == stream_metrics.MESSAGE_RESULTS
    assert names_stream.STREAM_WINDOW_RESULTS == stream_metrics.WINDOW_RESULTS
    assert names_stream.STREAM_PROBLEMS == stream_metrics.PROBLEMS
    assert names_stream.STREAM_LETTER_REASONS == LETTER_REASONS
    assert names_stream.STREAM_SHIFTS == tuple(SHIFTS)


def test_every_metric_of_the_list_is_shown_with_all_its_labels() -> None:
    """Closed sets are there from the beginning."""
    found = samples(FULL)

    assert {metric.name for metric in STREAM} == set(found)
    for metric in STREAM:
        assert {"".join(values) for values in metric.labels.values()} <= {""} or set(
            next(iter(metric.labels.values()))
        ) == set(found[metric.name])


def test_values_are_those_of_the_view() -> None:
    """Shares of the latest window, and its distance from the one before."""
    found = samples(FULL, {"state:full": 4, "sink": 2})

    assert (5, 2, 1, 3) == (
        found["stream_messages_total"]["ok"],
        found["stream_dead_letters_total"]["late"],
        found["stream_windows_total"]["late"],
        found["stream_step_failures_total"][""],
    )
    assert {"state_full": 4, "state_damaged": 0, "state_other": 0, "sink": 2} == found["stream_errors_total"]
    assert (101.5, 300, 180) == (
        found["stream_window_length_characters"][""],
        found["stream_window_messages"][""],
        found["stream_window_end_timestamp_seconds"][""],
    )
    assert {"length": 0.5, "non_ascii": 0.5, "language": 0.5, "device": 0.0} == found["stream_window_shift_ratio"]


def test_what_is_not_known_is_not_shown() -> None:
    """No window is complete, no source answers: no lag of 0, no length of 0."""
    found = samples(View())

    assert (0.0, 1.0) == (found["stream_source_up"][""], found["stream_stands_state"][""])
    assert not {name for name in found if name.startswith(("stream_window_", "stream_lag", "stream_waiting"))}


def test_few_messages_have_no_distance() -> None:
    """It would be noise."""
    few = View(windows=(window(1, ["a"] * 300), window(2, ["b" * 300] * 199)), source_up=True)

    assert "stream_window_shift_ratio" not in samples(few)
