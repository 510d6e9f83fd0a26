"""Queries are filled in as Grafana would."""

from __future__ import annotations

import pytest

from dashboards.macros import Moment, fill, variables_in

MOMENT = Moment(1000.0, 4600.0, 30.0, 15.0, {"service": ".*", "route": "/v1/sentiment"})


def test_macros_and_choices_are_filled_in() -> None:
    """All spellings of a variable, and Grafana's own names of times."""
    text = (
        'rate(a{s=~"$service", r="${route:regex}", q="[[route]]"}[$__rate_interval]) $__interval $__range ${__range_s}'
    )

    assert 'rate(a{s=~".*", r="/v1/sentiment", q="/v1/sentiment"}[60s]) 30s 3600s 3600' == fill(text, MOMENT)


@pytest.mark.parametrize(("step", "scrape", "expected"), [(5.0, 5.0, 20.0), (300.0, 15.0, 315.0), (15.0, 15.0, 60.0)])
def test_the_interval_of_rates_is_four_scrapes_or_a_step_and_a_scrape(
    step: float, scrape: float, expected: float
) -> None:
    """As Grafana computes $__rate_interval."""
    assert expected == Moment(0, 1, step, scrape).rate_interval


def test_a_variable_that_nobody_chose_is_an_error() -> None:
    """It would reach Prometheus as it stands."""
    with pytest.raises(KeyError, match="nobody"):
        fill('a{b="$nobody"}', MOMENT)


def test_variables_are_named_without_grafanas_own() -> None:
    """What a board must define."""
    assert {"a", "b", "c"} == variables_in("$a ${b:csv} [[c]] $__interval ${__value.raw}")
