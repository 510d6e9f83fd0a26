"""The spans (business steps) that the product writes, and their tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["ROOT_SPAN", "SPANS", "STAGES", "Span"]


@dataclass(frozen=True)
class Span:
    """A span (stage) that the product writes, with its place in the tree.

    Attributes:
        name: Named by business step; also the stage's name in the row.
        parent: Name of the span above it; empty for the root.
        layer: Where the fault lies when this span is slow (closed list in the failure table).
        help: What its time is spent on, in one sentence.
    """

    name: str
    parent: str
    layer: str
    help: str


# The root's name is method and route, as semantic conventions ask; for other apps it is theirs.
ROOT_SPAN: Final = "POST /v1/sentiment"
SPANS: Final[Mapping[str, Span]] = {
    span.name: span
    for span in (
        Span(ROOT_SPAN, "", "runtime", "The whole request, from its first byte to the last byte of the answer."),
        Span("network.receive", ROOT_SPAN, "network", "Waiting for the request's body."),
        Span("sentiment.preprocess", ROOT_SPAN, "preprocess", "Filters and cleaning of the text."),
        Span("photo.quality", ROOT_SPAN, "data", "Decoding a photo and judging how good it is."),
        Span("scheduler.dispatch", ROOT_SPAN, "scheduler", "Hand-over to the executor, its queue included."),
        Span("sentiment.tokenizer", "scheduler.dispatch", "tokenizer", "Turning text into token ids."),
        Span("triton.client", "scheduler.dispatch", "network", "A call to Triton: body, connection, wait, answer."),
        # under scheduler.dispatch where the model is in process: a parent that did not run is passed over
        Span("model.forward", "triton.client", "model", "The model's own work; behind Triton its queue as well."),
        Span("fallback.cpu", "scheduler.dispatch", "model", "The model in process, in place of a Triton that failed."),
        Span("vectorizer", "fallback.cpu", "model", "Its own work."),
        Span("postprocess.chunks", ROOT_SPAN, "model", "One answer of a long text's windows, each with its own."),
        Span("postprocess.confidence", ROOT_SPAN, "model", "From logits to label and confidence."),
        Span("network.send", ROOT_SPAN, "network", "Handing the answer to the socket."),
    )
}
STAGES: Final = tuple(name for name in SPANS if name != ROOT_SPAN)
