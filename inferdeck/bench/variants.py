"""The variants of the overhead bench: what each runs, and what each must prove to have done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BARE", "HISTOGRAMS", "REQUESTS_SAMPLE", "VARIANTS", "Variant"]

BARE: Final = "bare"

# one count per request each, on the peers' /metrics: the instrumentator's counter, the four histograms added by hand
REQUESTS_SAMPLE: Final = ("http_requests_total", {"handler": "/v1/sentiment"})
HISTOGRAMS: Final = ("bench_latency_seconds", "bench_confidence", "bench_input_characters", "bench_input_tokens")


@dataclass(frozen=True)
class Variant:
    """One way to observe the same no-op handler.

    Attributes:
        name: Key in results.
        title: What a reader of the table sees.
        ours: Rows by our recorder, read by our exporter in a process of its own.
        span_share: Share of requests whose spans must reach the sink; None when it sends no spans.
        spans_per_trace: Spans that one kept request must have; a lower bound for ours, exact for peers.
        counter: The instrumentator's request counter must grow by the requests.
        histograms: The four labelled histograms must grow by the requests.
    """

    name: str
    title: str
    ours: bool = False
    span_share: float | None = None
    spans_per_trace: int = 0
    counter: bool = False
    histograms: bool = False


# Spans per trace of the peers: server, receive, two sends (start, body), five children; without receive and send, six.
# Ours: the request, six stages of the handler, network.receive and network.send.
_ALL: Final = (
    Variant(BARE, "bare"),
    Variant("bare_aa", "bare again (A/A)"),
    Variant("inferdeck_1pct", "inferdeck, 1% as spans", ours=True, span_share=0.01, spans_per_trace=7),
    Variant("inferdeck_100pct", "inferdeck, 100% as spans", ours=True, span_share=1.0, spans_per_trace=7),
    Variant(
        "parity",
        "parity: OTel + instrumentator",
        span_share=1.0,
        spans_per_trace=9,
        counter=True,
        histograms=True,
    ),
    Variant(
        "strongest",
        "strongest: OTel, 1% sampled",
        span_share=0.01,
        spans_per_trace=6,
        counter=True,
        histograms=True,
    ),
    Variant("instrumentator", "instrumentator alone", counter=True),
)
VARIANTS: Final[dict[str, Variant]] = {variant.name: variant for variant in _ALL}
