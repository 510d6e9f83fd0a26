"""Tests of alerts/model.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from alerts.model import Alert, Threshold, fill

Change = Callable[[dict[str, Any]], object]


def test_a_complete_file_is_an_alert(document: dict[str, Any]) -> None:
    """A file that says all it must is accepted as it stands."""
    alert = Alert.model_validate(document)

    assert ("10s", None, 6) == (alert.for_, alert.keep_firing_for, len(alert.tests))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(expression="1"), "Extra inputs are not permitted"),
        (lambda d: d["thresholds"]["requests"].pop("source"), "Field required"),
        (lambda d: d["thresholds"]["requests"].update(source="     guess     "), "at least 8 characters"),
        (lambda d: d["thresholds"]["requests"].update(value=float("nan")), "finite"),
        (lambda d: d["thresholds"]["requests"].update(value="10"), "valid number"),
        (lambda d: d["thresholds"].update(idle={"value": 1, "source": "made up for tests"}), "does not use: idle"),
        (lambda d: d.update(expr="model_requests_in_flight > {most} + {requests}"), "expr names most"),
        (lambda d: d.update(description="more than {most}"), "a text names most"),
        (lambda d: d.update(summary="{{ $value }} in flight"), "no template"),
        (lambda d: d.update(slug="thread_pool_exhaustd"), "closed list"),
        (lambda d: d.update(kind="symptom"), "is no symptom of the closed list"),
        (lambda d: d.update(layer="gpu"), "the layer of thread_pool_exhausted is 'runtime'"),
        (lambda d: d.update(runbook="Other"), "bears its alert's name"),
        (lambda d: d.update(labels={"severity": "page"}), "cannot be set by hand: severity"),
        (lambda d: d.update({"for": "10 s"}), "should match pattern"),
        (lambda d: d.update(severity="critical"), "'page', 'ticket' or 'info'"),
        (lambda d: d.update(channel="data-quality"), "'page', 'ticket' or 'data_quality'"),
        (lambda d: d["tests"].pop(2), "no test of kind surge"),
        (lambda d: d["tests"].append(d["tests"][1]), "two cases bear the name 'ten do not'"),
        (lambda d: d["tests"][1].update(kind="fires"), "of kind fires and expects silence"),
        (lambda d: d["tests"][0].update(kind="surge"), "of kind surge and expects noise"),
        (lambda d: d["tests"][0].update(expect=[]), "at least 1 item"),
        (lambda d: d["tests"].pop(5), "no test of kind recovers"),
        (lambda d: d["tests"][5]["expect"].pop(), "of kind recovers and does not end in silence"),
        (lambda d: d.pop("no_data_state"), "Field required"),
        (lambda d: d.update(no_data_state="OK"), "'ok', 'alerting' or 'no_data'"),
        (lambda d: d.update(panel="Overview"), "should match pattern"),
    ],
)
def test_what_a_file_may_not_say_is_refused(document: dict[str, Any], change: Change, said: str) -> None:
    """Each slip in a catalogue file is refused with words that name it."""
    change(document)

    with pytest.raises(ValidationError) as caught:
        Alert.model_validate(document)

    assert said in str(caught.value)


def test_only_a_symptom_may_leave_the_layer_open(document: dict[str, Any]) -> None:
    """A symptom's layer is what its runbook finds out; any other alert names one of the closed list."""
    document.update(kind="symptom", slug="error_rate", layer="unknown")
    assert "unknown" == Alert.model_validate(document).layer

    document.update(kind="meta", slug="watchdog")
    with pytest.raises(ValidationError, match="is no layer"):
        Alert.model_validate(document)


def test_no_data_may_be_noise(document: dict[str, Any]) -> None:
    """That a target is absent is a failure that only missing data tells: a case of no data may fire."""
    document["tests"][3]["expect"] = document["tests"][0]["expect"]

    assert "no_data" == Alert.model_validate(document).tests[3].kind


@given(st.floats(min_value=1e-6, max_value=1e9, allow_nan=False))
def test_filling_a_placeholder_loses_no_digit_that_matters(value: float) -> None:
    """The number in the expression is the threshold's, to twelve digits, and braces of PromQL and templates stay."""
    thresholds = {"limit": Threshold(value=value, source="made up for tests")}

    filled = fill('up{job="x"} > {limit} # {{ $value }}', thresholds)

    assert filled.startswith('up{job="x"} > ')
    assert filled.endswith(" # {{ $value }}")
    assert pytest.approx(value, rel=1e-11) == float(filled.split()[2])
