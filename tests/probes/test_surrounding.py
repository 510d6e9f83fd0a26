from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk import trace as sdk
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from probes.surrounding import surrounding_span


def loaded(current: Any) -> dict[str, ModuleType]:
    """Return loaded modules: a trace API with this current span, and something that makes spans."""
    module = ModuleType("opentelemetry.trace")
    module.__dict__["get_current_span"] = current
    return {"opentelemetry.trace": module, "opentelemetry.sdk.trace": ModuleType("opentelemetry.sdk.trace")}


def test_without_the_api_nothing_is_looked_for() -> None:
    """An app that has no spans pays nothing for them."""
    assert surrounding_span({}) is None
    assert surrounding_span({"opentelemetry.trace": ModuleType("opentelemetry.trace")}) is None
    assert surrounding_span({"opentelemetry.trace": trace}) is None


def test_a_vendor_s_provider_makes_spans_without_the_sdk() -> None:
    """What was set as the process's provider counts, whoever made it."""
    modules = loaded(lambda: None)
    del modules["opentelemetry.sdk.trace"]
    before = surrounding_span(modules)
    modules["opentelemetry.trace"].__dict__["_TRACER_PROVIDER"] = object()

    assert before is None
    assert surrounding_span(modules) is not None


@pytest.mark.parametrize("sampled", [True, False])
def test_the_current_span_is_told_with_its_sampling(sampled: bool) -> None:
    """Trace id, span id and the sampled flag are those of the official API's current span; outside there is none."""
    find = surrounding_span({"opentelemetry.trace": trace, "opentelemetry.sdk.trace": sdk})
    assert find is not None
    context = SpanContext(
        2**100 + 5, 2**60 + 7, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED if sampled else 0)
    )

    assert find() is None
    with use_span(NonRecordingSpan(context)):
        assert (2**100 + 5, 2**60 + 7, sampled) == find()
    assert find() is None


def test_an_api_that_breaks_costs_the_parent_alone() -> None:
    """What somebody else's span raises, or lacks, is no error of the request's."""

    def broken() -> None:
        raise RuntimeError("no context")

    for current in (broken, lambda: None, lambda: SimpleNamespace(get_span_context=lambda: None)):
        find = surrounding_span(loaded(current))
        assert find is not None
        assert find() is None


@pytest.mark.parametrize(("trace_id", "span_id"), [(2**128, 1), (1, 2**64), (-1, 1), (1, 0), ("a", 1), (1, None)])
def test_ids_that_a_row_has_no_room_for_cost_the_parent_alone(trace_id: Any, span_id: Any) -> None:
    """A tracer of its own kind may have ids of any width, or none that is a number."""
    context = SimpleNamespace(trace_id=trace_id, span_id=span_id, trace_flags=1, is_valid=True)
    find = surrounding_span(loaded(lambda: SimpleNamespace(get_span_context=lambda: context)))

    assert find is not None
    assert find() is None
