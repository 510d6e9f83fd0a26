"""Signs of instruments that fail while the service goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runbooks.evidence import Evidence, Window
from runbooks.signals import QUERIES
from runbooks.steps import latency, stages, telemetry


def evidence(here: Any) -> Evidence:
    """Return a world's evidence with its true onset."""
    window = Window(here.onset - here.before, here.until, here.onset, here.until)
    return Evidence(window, here.metrics().collect(QUERIES, window.since, window.until), here.rows())


def test_a_lost_exporter_shows_in_every_step(world: Callable[..., Any]) -> None:
    """Its target is down and its samples age, while the service answers and writes rows."""
    known = evidence(world(exporter_dead_after=0.0, during=40.0))

    assert telemetry.exporter_target_down(known).value == pytest.approx(40.0, abs=5.0)
    assert telemetry.metrics_age(known).value == pytest.approx(40.0, abs=6.0)
    assert telemetry.service_answers(known).value is True
    assert telemetry.rows_still_written(known).value is True


def test_a_dead_service_is_not_a_lost_exporter(world: Callable[..., Any]) -> None:
    """The exporter answers with fresh samples; the service and its rows do not."""
    known = evidence(world(dead_after=0.0, during=40.0))

    assert 0.0 == telemetry.exporter_target_down(known).value
    assert float(telemetry.metrics_age(known).value or 0) < 6.0
    assert telemetry.service_answers(known).value is False
    assert telemetry.rows_still_written(known).value is False


@pytest.mark.parametrize(
    "step",
    [
        *(getattr(telemetry, name) for name in telemetry.__all__),
        *(getattr(latency, name) for name in latency.__all__),
        *(getattr(stages, name) for name in stages.__all__),
    ],
)
def test_each_step_says_so_when_it_cannot_see(step: Callable[[Evidence], Any]) -> None:
    """No sources: no value, and a sentence."""
    found = step(Evidence(Window(0.0, 60.0)))

    assert found.value is None
    assert found.detail
    assert step.__name__ == found.step.split(".")[1]
