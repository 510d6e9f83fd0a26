"""Pictures are drawn from the dashboards' own queries and layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dashboards.boards import gpu, overview, request_path
from dashboards.build import build_board
from dashboards.live import choices_of
from dashboards.macros import Moment
from dashboards.prometheus_http import Prometheus
from dashboards.render.__main__ import main
from dashboards.render.frames import ask_panel, marks_at
from dashboards.render.picture import draw
from dashboards.render.spelling import spell
from dashboards.spec import Board
from dashboards.thresholds import load_alerts
from tests.dashboards.fake_prometheus import matrix, serving, vector

LABELS = {
    "input_bucket": "short", "outcome": "error", "route": "/v1/sentiment", "stage": "model.forward", "how": "died",
    "source": "loop", "generation": "2", "phase": "import", "folder": "rows", "job": "service", "layer": "runtime",
    "alertname": "EventLoopBlocked", "severity": "page", "reason": "schema", "agent_family": "chrome",
}  # fmt: skip


def synthetic(path: str, _parameters: Mapping[str, str]) -> tuple[int, Any]:
    """Answer every question with two series, one of which holds no number in the middle."""
    if path == "query_exemplars":
        return 200, [{"exemplars": [{"labels": {"trace_id": "f"}, "value": "1", "timestamp": 1010.0}]}]
    if path == "query":
        return 200, {"resultType": "vector", "result": [vector({**LABELS, "le": "1"}, 3.0, 1060.0)]}
    series = [matrix({**LABELS, "le": le}, [1.0, 2.0, float("nan"), 1.0, 2.0]) for le in ("1", "+Inf")]
    return 200, {"resultType": "matrix", "result": series}


def moment(board: Board) -> Moment:
    """Return a minute on the screen."""
    return Moment(1000.0, 1060.0, 15.0, 15.0, choices_of(board))


@pytest.mark.parametrize("board", [overview.BOARD, request_path.BOARD], ids=lambda board: board.name)
def test_every_kind_of_panel_is_drawn(board: Board, tmp_path: Path) -> None:
    """As large as the layout says, and small enough to be committed."""
    document = build_board(board, load_alerts())

    with serving(synthetic) as url:
        filled, total = draw(document, Prometheus(url), moment(board), tmp_path / "a.png")

    assert filled == total == len(board.panels)
    with Image.open(tmp_path / "a.png") as picture:
        assert 1600 == picture.width
    assert (tmp_path / "a.png").stat().st_size < 300_000


def test_a_panel_without_data_says_why(tmp_path: Path) -> None:
    """It is counted as empty, and its text fills its place."""
    document = build_board(gpu.BOARD, load_alerts())
    empty = {"resultType": "matrix", "result": []}

    with serving(lambda path, _parameters: (200, [] if path == "query_exemplars" else empty)) as url:
        filled, total = draw(document, Prometheus(url), moment(gpu.BOARD), tmp_path / "a.png")

    assert (0, len(gpu.BOARD.panels)) == (filled, total)
    # Text was drawn: the picture is not of two colours alone.
    with Image.open(tmp_path / "a.png") as picture:
        assert len(picture.convert("RGB").getcolors(10_000) or []) > 10


def test_series_are_named_by_the_legend_and_empty_ones_left_out() -> None:
    """As Grafana fills `{{label}}`."""
    panel = {"targets": [{"expr": "a", "legendFormat": "{{route}} now"}]}
    result = [matrix({"route": "/b"}, [1.0]), matrix({"route": "/a"}, [2.0]), matrix({}, [float("nan")])]

    with serving(lambda _path, _parameters: (200, {"resultType": "matrix", "result": result})) as url:
        frames = ask_panel(panel, Prometheus(url), Moment(0, 1))

    assert ["/a now", "/b now"] == [frame.name for frame in frames]


def test_an_event_is_marked_where_it_begins() -> None:
    """Twice when it went away in between."""
    document = {"annotations": {"list": [{"name": "built in"}, {"name": "x", "expr": "x", "iconColor": "red"}]}}
    series = {"metric": {}, "values": [[1000, "1"], [1015, "1"], [1300, "1"], [1315, "1"]]}

    with serving(lambda _path, _parameters: (200, {"resultType": "matrix", "result": [series]})) as url:
        found = marks_at(document, Prometheus(url), Moment(1000, 1400))

    assert [1000, 1300] == [mark.at for mark in found]


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.0003, "s", None, "300 µs"),
        (0.25, "s", None, "250 ms"),
        (3661.0, "s", None, "1.02 h"),
        (0.0, "s", None, "0 s"),
        (0.051, "percentunit", None, "5.1%"),
        (0.0, "percentunit", 2, "0.00%"),
        (3 * 2**20, "bytes", None, "3 MiB"),
        (20.5, "reqps", 1, "20.5 req/s"),
        (1234.0, "short", None, "1.23 K"),
        (float("nan"), "s", None, "no data"),
        (-2048.0, "binBps", None, "-2 KiB/s"),
        (7.0, "none", 0, "7"),
        (1.7e308, "percentunit", None, "∞%"),
        (-1.7e308, "percentunit", 1, "-∞%"),
    ],
)
def test_numbers_are_spelled_in_their_unit(value: float, unit: str, decimals: int | None, text: str) -> None:
    """The scale follows the size."""
    assert text == spell(value, unit, decimals)


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["s", "bytes", "short", "percentunit", "none"]))
def test_every_number_can_be_spelled(value: float, unit: str) -> None:
    """None of them ends the picture."""
    assert spell(value, unit)


def test_a_prometheus_that_does_not_answer_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the exit code says so."""
    with serving(lambda _path, _parameters: (503, "starting up")) as url:
        code = main(["--prometheus", url, "--out", str(tmp_path), "--board", "gpu"])

    assert 1 == code
    error = capsys.readouterr().err
    assert 1 == error.count("\n")
    assert "starting up" in error
