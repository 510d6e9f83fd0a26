"""A waterfall shows bars by time, marks the slow stage, and survives odd spans."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from inferdeck.waterfall import bar, show_traces, span_depths, spell_seconds

SECONDS = st.floats(0, 1e4, allow_nan=False)


def span(name: str, parent: str, start_s: float, duration_s: float, **attributes: Any) -> dict[str, Any]:
    """Return a span."""
    return {"name": name, "parent": parent, "start_s": start_s, "duration_s": duration_s, "attributes": attributes}


def trace(**changes: Any) -> dict[str, Any]:
    """Return a trace with a slow tokenizer."""
    spans = [
        span("POST /v1/sentiment", "", 0.0, 0.1),
        span("scheduler.dispatch", "POST /v1/sentiment", 0.01, 0.09, queue_wait_ns=2_000_000),
        span("sentiment.tokenizer", "scheduler.dispatch", 0.02, 0.07, padding_ratio=0.81, tokens=512),
    ]
    whole = {
        "trace_id": "0" * 32,
        "session_id": "abcdefghijklmnopqrst",
        "started": "2026-01-01T00:00:00Z",
        "duration_s": 0.1,
        "status": "ok",
        "last_stage": "sentiment.tokenizer",
        "slow_stage": "sentiment.tokenizer",
        "why": "padding_ratio 0.81",
        "spans": spans,
        "hint": "",
    }
    return whole | changes


def drawn(*traces: dict[str, Any]) -> str:
    """Return what is printed for a look-up."""
    console = Console(file=io.StringIO(), width=120, color_system=None)
    show_traces(console, {"traces": list(traces), "lookup_s": 0.002, "ring_dir": "/rows"})
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_slow_stage_is_named_with_its_reason_and_marked() -> None:
    """First what is slow and why, then the bars, the slow one marked alone."""
    text = drawn(trace())

    assert "slow: sentiment.tokenizer  because padding_ratio 0.81" in text
    assert ["sentiment.tokenizer"] == [line.split()[0] for line in text.splitlines() if "<- slow" in line]
    assert "queue_wait 2.0 ms" in text
    assert "1 found in 2.0 ms" in text


def test_the_root_line_shows_what_was_answered() -> None:
    """A 404 and a 405 are told apart without --json."""
    root = span("POST /x", "", 0.0, 0.1, **{"http.response.status_code": 405})

    assert ["HTTP 405"] == [
        line.split("100.0 ms  ")[1] for line in drawn(trace(spans=[root])).splitlines() if "#" in line
    ]


def test_a_photo_shows_how_sharp_it_was() -> None:
    """What it was judged comes first."""
    photo = span("photo.quality", "", 0.0, 0.1, queue_wait_ns=2_000_000, pixels=12_000_000, sharpness=9.2519)

    assert "sharpness 9.25  queue_wait 2.0 ms" in drawn(trace(spans=[photo]))


def test_a_session_id_is_not_shown_whole() -> None:
    """It is personal data: enough to tell sessions apart."""
    assert "abcdef.." in drawn(trace())
    assert "abcdefg" not in drawn(trace())


def test_children_hang_below_their_parents() -> None:
    """Indentation follows the tree."""
    lines = drawn(trace()).splitlines()
    indent = {line.split()[0]: len(line) - len(line.lstrip()) for line in lines if "#" in line}

    assert [2, 4, 6] == [indent[name] for name in ("POST", "scheduler.dispatch", "sentiment.tokenizer")]


def test_an_unfinished_request_tells_its_last_stage() -> None:
    """After a kill: started, never ended, last stage."""
    text = drawn(trace(status="unfinished", last_stage="model.forward"))

    assert "never ended; last stage: model.forward" in text


def test_nothing_found_says_where_it_was_looked_for() -> None:
    """Not found and overwritten cannot be told apart, so both are said."""
    assert "nothing found in /rows" in drawn()


def test_a_usual_request_is_not_called_slow() -> None:
    """What is as fast as others has no slow stage to mark."""
    text = drawn(trace(why="usual: 0.1 s where short inputs take 0.1 s", usual=True))

    assert "<- slow" not in text
    assert "slow:" not in text


def test_markup_in_data_is_printed_as_it_is() -> None:
    """A label with brackets is data, not a colour."""
    assert "[red]" in drawn(trace(why="[red]x[/red]"))


@settings(deadline=None)  # a busy machine is no failure
@given(SECONDS, SECONDS, SECONDS, st.integers(1, 200))
def test_a_bar_fits_its_cells_and_is_never_empty(start: float, duration: float, total: float, cells: int) -> None:
    """Whatever the numbers, a bar has its width and at least one mark."""
    drawn_bar = bar(start, duration, total, cells)

    assert cells == len(drawn_bar)
    assert 1 <= drawn_bar.count("#") <= cells


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", *"abcdef"])), max_size=8))
def test_depths_end_for_any_parents(pairs: list[tuple[str, str]]) -> None:
    """Cycles and missing parents do not hang the drawing."""
    depths = span_depths([span(name, parent, 0, 0) for name, parent in pairs])

    assert len(pairs) == len(depths)
    assert all(0 <= depth <= len(pairs) for depth in depths)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00085, "850 us"), (0.0123, "12.3 ms"), (1.416, "1.42 s"), (0.0, "0 us")]
)
def test_durations_are_spelled_for_people(seconds: float, text: str) -> None:
    """Three units, enough digits."""
    assert text == spell_seconds(seconds)
