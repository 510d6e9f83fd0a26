"""Prometheus' texts say the same in Grafana, or are refused."""

from __future__ import annotations

import pytest

from alerts.grafana.model import FormatError
from alerts.grafana.texts import grafana_text


def test_the_value_is_the_questions_number() -> None:
    """`$value` would be a sentence about all steps; labels and functions are the same."""
    told = '{{ $value | humanizePercentage }} of {{ $labels.input_bucket }}, {{ printf "%.0f $value" $value }}; $value'

    assert (
        "{{ $values.query.Value | humanizePercentage }} of {{ $labels.input_bucket }}, "
        '{{ printf "%.0f $values.query.Value" $values.query.Value }}; $value'
    ) == grafana_text(told)


@pytest.mark.parametrize("action", ['{{ query "up" | first }}', "{{ $externalLabels.x }}", "{{ $externalURL }}"])
def test_what_grafana_lacks_is_refused(action: str) -> None:
    """A text that cannot be shown would show an error instead of the alert."""
    with pytest.raises(FormatError, match="Grafana's templates do not have"):
        grafana_text(f"before {action} after")


def test_a_word_in_quotes_is_no_function() -> None:
    """Only names count."""
    assert '{{ "first query" }}' == grafana_text('{{ "first query" }}')
