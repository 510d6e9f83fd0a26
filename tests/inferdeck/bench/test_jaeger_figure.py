"""The figure for Jaeger is measured on a real one, or it is null and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.bench.jaeger_figure import JaegerFigure, measure_jaeger
from inferdeck.bench.look_ups import shape_look_ups
from tests.containers.images import jaeger_binary
from tests.inferdeck.bench.test_look_ups import found, validate


@pytest.mark.parametrize(("seconds", "wrong", "passed"), [([0.99], 0, True), ([1.0], 0, False), ([0.1], 1, False)])
def test_a_slow_or_wrong_jaeger_is_a_miss(seconds: list[float], wrong: int, passed: bool) -> None:
    """Issue 7 allows a second."""
    measured = found()
    measured.jaeger = JaegerFigure(100, seconds, wrong, 1000)

    result = shape_look_ups(measured)

    validate(result)
    assert (passed, seconds[0], "") == (
        result["gate"]["passed"],
        result["lookup_s"]["jaeger"],
        result["jaeger_missing"],
    )


def test_a_program_that_is_no_jaeger_is_said(tmp_path: Path) -> None:
    """It ends at once; nothing is measured, and nothing made up."""
    (tmp_path / "jaeger").write_text("#!/bin/sh\necho no such option\n")
    (tmp_path / "jaeger").chmod(0o755)

    figure = measure_jaeger(100, 2, program=tmp_path / "jaeger")

    assert figure.median is None
    assert "no such option" in figure.missing


# A fresh machine compiles Jaeger first, once for all tests.
@pytest.mark.real
@pytest.mark.timeout(1700)
def test_sessions_are_found_in_a_real_jaeger() -> None:
    """All of a session's requests, and none of one that is not there."""
    figure = measure_jaeger(400, 6, program=jaeger_binary())

    assert (400, 6, 0, "") == (figure.traces, len(figure.seconds), figure.wrong, figure.missing)
    assert figure.rss_bytes > 10 << 20
