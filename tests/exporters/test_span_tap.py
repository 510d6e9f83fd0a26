"""What is chosen, what is shed, and that both are counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from exporters.keep import KeepBudget, KeepRules
from exporters.rows import open_requests
from exporters.sender import Answer, Sender
from exporters.span_tap import SpanTap
from exporters.totals import Totals
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight


class Silent:
    """A transport that is never asked: the sender's thread is not started."""

    def post(self, body: bytes, *, compressed: bool) -> Answer:
        """Accept everything."""
        return Answer(200 if body or compressed else 400)

    def close(self) -> None:
        """Nothing to close."""


def offered(tap: SpanTap, flight: Flight, cursor: int) -> Totals:
    """Hand the rows from *cursor* on to the tap."""
    with RingFile(flight.path) as ring:
        return tap.offer(ring.header, ring.read(cursor).rows, ring.strings())


def test_what_is_over_the_budget_is_not_sent_and_counted_by_its_rule(
    fly: Callable[..., Flight], caplog: pytest.LogCaptureFixture
) -> None:
    """Six worth keeping and room for four: the error stays, random ones go; said once, and once when it is over."""
    flight, now = fly(), [0.0]
    sender = Sender(Silent(), version="0")
    budget = KeepBudget(2.0, lambda: now[0])
    tap = SpanTap(sender, KeepRules(share=1.0, first=0), "0", budget)
    for _ in range(5):
        flight.row()
    flight.row(outcome=2)
    with caplog.at_level(logging.WARNING, logger="exporters.span_tap"):
        first = offered(tap, flight, 0)
        flight.row()
        again = offered(tap, flight, 6)
        now[0] += 10.0
        flight.row()
        after = offered(tap, flight, 7)

    kept, shed = "telemetry_traces_kept_total", "telemetry_traces_shed_total"
    assert (1, 3, 2) == (first.value(kept, "error"), first.value(kept, "random"), first.value(shed, "random"))
    assert (0, 1) == (again.value(kept, "random"), again.value(shed, "random"))
    assert (1, 0) == (after.value(kept, "random"), after.value(shed, "random"))
    # Each of the five that were sent is one span: no stage ran.
    assert 5 == sender.queued
    assert ["shedding (telemetry_traces_shed_total)", "shedding no more (telemetry_traces_shed_total)"] == [
        record.getMessage().rpartition("; ")[2] for record in caplog.records
    ]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"canary_difference": True}, "canary_difference"),
        ({"canary_difference": False}, None),
        ({"data_drift_score": 0.6, "confidence_weight": 0.4}, "drift"),
        ({"data_drift_score": 0.2, "confidence_weight": 1.0}, None),
    ],
)
def test_what_a_service_writes_of_canary_and_drift_keeps_its_rows(
    fly: Callable[..., Flight], attributes: dict[str, bool | float], reason: str | None
) -> None:
    """Written by the recorder's own call, as the service does it, and read from the ring file."""
    flight = fly()
    record = flight.begin()
    record.set(**attributes)
    flight.intake.finish(record, {"type": "http"}, 200, disconnected=False)
    tap = SpanTap(Sender(Silent(), version="0"), KeepRules(share=0.0, first=0, drift_share=1.0), "0")

    counts = offered(tap, flight, 0).counters.get("telemetry_traces_kept_total", {})

    assert ([(reason,)] if reason else []) == list(counts)


def test_unfinished_requests_are_sent_unless_their_rule_is_off(fly: Callable[..., Flight]) -> None:
    """A worker dies under one request."""
    flight = fly()
    flight.begin(stage="model.forward")
    flight.die()
    with RingFile(flight.path) as ring:
        left = open_requests(ring, alive=False)
        counts = [
            SpanTap(Sender(Silent(), version="0"), KeepRules(unfinished=on), "0")
            .offer_unfinished(ring.header, left, 0)
            .value("telemetry_traces_kept_total", "unfinished")
            for on in (True, False)
        ]

    assert [1, 0] == counts
