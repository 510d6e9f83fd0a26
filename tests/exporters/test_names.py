from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters import buckets, names
from exporters.names import LABELS, METRICS, OBJECTIVES_SECONDS, SPANS, UNIT_SUFFIXES, Metric, input_bucket
from probes import event_loop, gc_pauses

PREFIXES = ("model_", "gpu_", "runtime_", "data_", "stream_", "telemetry_")
# Milliseconds, microseconds and percent are converted before they get a name.
FORBIDDEN = re.compile(r"(^|_)(ms|millis|milliseconds|us|micros|microseconds|percent|pct|mb|kb|gb)(_|$)")


def faults(metric: Metric) -> list[str]:
    """What is wrong with a metric's name, labels or buckets."""
    found = []
    if not metric.name.startswith(PREFIXES):
        found.append("prefix")
    if not metric.name.endswith(UNIT_SUFFIXES):
        found.append("unit suffix")
    if FORBIDDEN.search(metric.name) or FORBIDDEN.search(metric.unit):
        found.append("not a base unit")
    if (metric.kind == "counter") != metric.name.endswith("_total"):
        found.append("_total is for counters, and every counter has it")
    if (metric.kind == "histogram") != bool(metric.buckets):
        found.append("buckets")
    if list(metric.buckets) != sorted(set(metric.buckets)):
        found.append("bounds ascend")
    found += [f"label {label}" for label in metric.labels if label not in LABELS]
    found += [
        f"unbounded {label}" for label, values in metric.labels.items() if not values and label not in metric.limits
    ]
    return found


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_is_well_named_and_bounded(metric: Metric) -> None:
    """Each metric has a known prefix, a unit suffix, a base unit, known labels and bounded values."""
    assert not faults(metric)
    assert metric.help.endswith(".")


@pytest.mark.parametrize(
    ("metric", "fault"),
    [
        (Metric("model_latency", "gauge", "seconds", "x."), "unit suffix"),
        (Metric("model_latency_ms", "gauge", "ms", "x."), "not a base unit"),
        (Metric("runtime_cpu_percent_ratio", "gauge", "ratio", "x."), "not a base unit"),
        (Metric("latency_seconds", "gauge", "seconds", "x."), "prefix"),
        (Metric("model_requests_total", "gauge", "requests", "x."), "_total is for counters, and every counter has it"),
        (Metric("model_wait_seconds", "histogram", "seconds", "x."), "buckets"),
        (Metric("model_a_total", "counter", "requests", "x.", labels={"session_id": ("a",)}), "label session_id"),
        (Metric("model_a_total", "counter", "requests", "x.", labels={"route": ()}), "unbounded route"),
    ],
)
def test_a_badly_named_metric_is_refused(metric: Metric, fault: str) -> None:
    """The check above can fail: each kind of bad name is found."""
    assert fault in faults(metric)


def test_no_label_holds_an_id() -> None:
    """Ids of requests, sessions and traces are unbounded and personal, so no label is named after one."""
    assert not [label for label in LABELS if {"id", "session", "trace"} & set(label.split("_"))]


def test_neighbouring_latency_bounds_are_within_a_factor() -> None:
    """A latency or stage quantile is known to a factor of 1.6, from 0.25 ms (stages: 1 us) up to 10 s."""
    for bounds, first in ((buckets.LATENCY_BUCKETS, 0.00025), (buckets.STAGE_BUCKETS, 0.000001)):
        assert bounds[0] <= first
        assert bounds[-1] == 10.0
        assert max(high / low for low, high in pairwise(bounds)) <= 1.6


def test_objectives_and_length_classes_are_bounds() -> None:
    """A threshold that is no bucket bound could only be estimated, so each objective and length split is one."""
    assert set(OBJECTIVES_SECONDS.values()) <= set(buckets.LATENCY_BUCKETS)
    assert {100.0, 500.0} <= set(buckets.LENGTH_BUCKETS)


def test_lags_and_pauses_have_the_recorder_s_bounds() -> None:
    """Equal bounds: nothing that a worker counted is moved to another bucket."""
    assert buckets.LAG_BUCKETS == event_loop.BOUNDS_S
    assert buckets.GC_BUCKETS == gc_pauses.BOUNDS_S


def test_confidence_bounds_are_finer_near_one() -> None:
    """From 0.88 on, bounds are at most 0.02 apart."""
    top = [bound for bound in buckets.CONFIDENCE_BUCKETS if bound >= 0.88]
    assert max(high - low for low, high in pairwise(top)) <= 0.0201
    assert top[-1] == 1.0


def test_spans_form_one_tree() -> None:
    """Every span's parent is a span, and one span has none."""
    roots = [span.name for span in SPANS.values() if not span.parent]
    assert [names.ROOT_SPAN] == roots
    assert all(span.parent in SPANS for span in SPANS.values() if span.parent)


@given(st.integers(-(2**63), 2**63 - 1))
def test_input_bucket_follows_the_length(length: int) -> None:
    """Short is below 100 characters, medium 100 to 500, long over 500, and an absent length is unknown."""
    expected = (
        "unknown" if length < 0 else "short" if length <= 99 else "medium" if length in range(100, 501) else "long"
    )
    assert expected == input_bucket(length)
