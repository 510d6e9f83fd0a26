"""Reading what wrk counted."""

from __future__ import annotations

import pytest

from inferdeck.bench.load import Load, parse

OUTPUT = """Running 1s test @ http://127.0.0.1:1
  1 threads and 16 connections
Requests/sec:   1352.79
{"answered": 1500, "sent": 1517, "microseconds": 1500000, "refused": 1, "broken": 2, "p50_us": 10, "p95_us": 20, "p99_us": 30}
"""  # noqa: E501  # the line is wrk's


def test_the_last_line_tells_everything() -> None:
    """Counts, length and times come from the JSON line, in base units; wrk's own extra request is taken off."""
    load = parse(OUTPUT)

    assert Load(1500, 1516, 1.5, refused=1, broken=2, p50_s=1e-5, p95_s=2e-5, p99_s=3e-5) == load
    assert 1000.0 == load.rps


def test_an_output_without_figures_is_refused() -> None:
    """A wrk that could not connect prints no figures."""
    with pytest.raises(ValueError, match="no JSON line"):
        parse("unable to connect to 127.0.0.1:1 Connection refused\n")
