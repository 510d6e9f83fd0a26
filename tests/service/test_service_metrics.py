"""The service's own series."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.names import METRICS
from exporters.names_degraded import DEGRADED, DEGRADED_REASONS, RESULT_EVENTS
from service.artifacts import Fingerprints
from service.degradation.results import EVENTS
from service.degradation.rules import REASONS
from service.scheduler.memory import GateState
from service.service_metrics import Degraded, Snapshot, render


def test_values_are_escaped_and_losses_counted() -> None:
    """Odd values cannot break the exposition, and the count of reasons is bounded."""
    loss = {f"reason_{i:03d}": i for i in range(100)}
    told = Snapshot('1"0\n', "abc", "m\\odel", "cfg", "ready", loss)
    families = {family.name: family for family in text_string_to_metric_families(render(told).decode())}
    assert families["model_build_info"].samples[0].labels == {
        "version": '1"0\n',
        "commit": "abc",
        "model": "m\\odel",
        "config": "cfg",
    }
    samples = families["telemetry_requests_unrecorded"].samples
    assert {sample.labels["reason"]: sample.value for sample in samples} == {f"reason_{i:03d}": i for i in range(64)}


def test_words_are_those_of_the_names() -> None:
    """Closed sets are written once on either side of the border, and held equal here."""
    assert (DEGRADED_REASONS, RESULT_EVENTS) == (REASONS, EVENTS)
    text = render(
        Snapshot("1", "c", "m", "f", "ready", {}, degraded=Degraded(gate=GateState(5, 2.0, ""), peak_bytes=9))
    ).decode()
    shown = {family.name for family in text_string_to_metric_families(text)}
    for metric in DEGRADED:
        assert (metric.name.removesuffix("_total") in shown) == (metric.job == "service")


def test_memory_that_nobody_knows_has_no_figures() -> None:
    """An absent reading is no zero; without a device there are no series at all."""
    gate = GateState(None, None, "driver lost")
    told = render(Snapshot("1", "c", "m", "f", "ready", {}, degraded=Degraded(gate=gate))).decode()
    assert "model_memory_known_state 0.0" in told
    assert "model_memory_free_bytes" not in told
    assert "model_memory" not in render(Snapshot("1", "c", "m", "f", "ready", {})).decode()
    peak = render(Snapshot("1", "c", "m", "f", "ready", {}, degraded=Degraded(peak_bytes=9))).decode()
    assert "model_memory_peak_bytes 9.0" in peak


@pytest.mark.parametrize(("served", "state"), [("aaaa", 0.0), ("bbbb", 1.0)])
def test_fingerprints_are_told_with_whether_they_differ(served: str, state: float) -> None:
    """One series with both; none before there is a model."""
    metric = METRICS["data_preprocess_mismatch_state"]
    told = render(Snapshot("1", "c", "m", "f", "ready", {}, preprocess=Fingerprints("aaaa", served))).decode()
    (sample,) = next(f for f in text_string_to_metric_families(told) if f.name == metric.name).samples
    assert ({"trained": "aaaa", "served": served}, state) == (sample.labels, sample.value)
    assert set(metric.labels) == set(sample.labels)
    assert metric.name not in render(Snapshot("1", "c", "m", "f", "ready", {})).decode()
