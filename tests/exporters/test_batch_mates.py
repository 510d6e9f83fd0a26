"""Requests of one batch link to each other, stage by stage, and to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from exporters import batch_mates
from exporters.batch_mates import BatchMates
from exporters.keep import KeepRules
from exporters.otlp import export_request
from exporters.sender import Answer, Sender
from exporters.span_tap import SpanTap
from probes.reader import RingFile

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight


class Kept(Sender):
    """A sender that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(Nowhere(), version="0")

    def spans(self) -> list[dict[str, Any]]:
        """Return name, ids and links of all spans."""
        bodies = {b"": [parcel.body for parcel in self._queue]}
        request = ExportTraceServiceRequest.FromString(export_request(bodies, "0"))
        return [
            {
                "name": span.name,
                "place": (span.trace_id.hex(), span.span_id.hex()),
                "links": [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
            }
            for span in request.resource_spans[0].scope_spans[0].spans
        ]


class Nowhere:
    """A transport that is never asked."""

    def post(self, body: bytes, *, compressed: bool) -> Answer:
        """Accept everything."""
        return Answer(200 if body or compressed else 400)

    def close(self) -> None:
        """Nothing to close."""


def offer(tap: SpanTap, flight: Flight, cursor: int) -> None:
    """Hand the rows from *cursor* on to the tap."""
    with RingFile(flight.path) as ring:
        tap.offer(ring.header, ring.read(cursor).rows, ring.strings())


def test_each_shared_stage_links_to_the_same_stage_of_the_others(fly: Callable[..., Flight]) -> None:
    """Three of a batch, one alone: "who shared my batch" is one click, from the model's span to theirs."""
    flight, sender = fly(), Kept()
    tap = SpanTap(sender, KeepRules(share=1.0), "0")
    for batch in (7, 7, 0, 7):
        flight.row(batch_id=batch, stages={"model.forward": (0, 5), "sentiment.tokenizer": (5, 1)})

    offer(tap, flight, 0)

    model = [span for span in sender.spans() if span["name"] == "model.forward"]
    together = [model[number]["place"] for number in (0, 1, 3)]
    assert [set(together) - {span["place"]} for span in model if span["place"] in together] == [
        set(model[number]["links"]) for number in (0, 1, 3)
    ]
    assert [] == model[2]["links"]
    assert {0} == {len(span["links"]) for span in sender.spans() if span["name"] != "model.forward"}


def test_a_later_part_of_a_batch_links_to_the_earlier(fly: Callable[..., Flight]) -> None:
    """Rows are read once a second; a batch may lie on both sides."""
    flight, sender = fly(), Kept()
    tap = SpanTap(sender, KeepRules(share=1.0), "0")
    for cursor in (0, 1):
        flight.row(batch_id=7, stages={"model.forward": (0, 5)})
        offer(tap, flight, cursor)

    model = [span for span in sender.spans() if span["name"] == "model.forward"]

    assert [[], [model[0]["place"]]] == [span["links"] for span in model]


def test_what_is_remembered_is_bounded(fly: Callable[..., Flight]) -> None:
    """Batches without end, and one without end."""
    flight, mates = fly(), BatchMates()
    for number in range(40):
        flight.row(batch_id=1 if number < 35 else number)
    with RingFile(flight.path) as ring:
        rows = ring.read(0).rows
    for lap in range(2000):
        mates.learn(str(lap), rows)

    assert batch_mates.MOST_BATCHES == len(mates._batches)
    assert batch_mates.MOST_MATES == len(mates.of("1999", 1, 0))
    assert [] == mates.of("0", 1, 0)
    assert [] == mates.of("1999", 0, 0)
