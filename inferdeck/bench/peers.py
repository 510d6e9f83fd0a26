"""The peers of the overhead bench: OpenTelemetry for FastAPI and the Prometheus instrumentator, used as documented."""

from __future__ import annotations

import time

from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from prometheus_client import Histogram
from prometheus_fastapi_instrumentator import Instrumentator

from inferdeck.bench.contract import Answer, Query, answer

__all__ = ["count_requests", "observe"]

ROUTE = "/v1/sentiment"


def count_requests(app: FastAPI) -> None:
    """Add prometheus-fastapi-instrumentator with its defaults, and its /metrics."""
    Instrumentator().instrument(app).expose(app)


def observe(app: FastAPI, otlp_url: str, *, strongest: bool) -> None:
    """Give *app* what a row of ours holds, by the usual packages.

    Args:
        app: The app without routes.
        otlp_url: OTLP/HTTP traces endpoint.
        strongest: The cheapest set-up we found: no spans for ASGI receive and send, 1% head sampling.
    """
    provider = TracerProvider(sampler=ParentBasedTraceIdRatio(0.01) if strongest else None)
    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=otlp_url))
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    # the bench's own flush and /metrics must not count as requests
    FastAPIInstrumentor.instrument_app(
        app, excluded_urls="_bench,metrics", exclude_spans=["send", "receive"] if strongest else None
    )
    count_requests(app)

    @app.get("/_bench/flush")
    def flush() -> dict[str, bool]:
        return {"flushed": processor.force_flush()}

    _handler(app, trace.get_tracer("bench"))


def _handler(app: FastAPI, tracer: trace.Tracer) -> None:
    latency = Histogram("bench_latency_seconds", "Handler time", ["route", "input_bucket"])
    confidence = Histogram("bench_confidence", "Confidence", ["route"])
    characters = Histogram("bench_input_characters", "Input length", ["route"])
    tokens = Histogram("bench_input_tokens", "Tokens", ["route"])
    span = tracer.start_as_current_span

    @app.post(ROUTE)
    async def sentiment(query: Query) -> Answer:
        start = time.perf_counter()
        length = len(query.text)
        with span("preprocess", attributes={"chars": length, "lang": "zh", "truncated": False, "norm": "nfkc"}):
            pass
        with span("tokenizer", attributes={"tokens": length // 4, "max_len": 512, "pad": 0, "cache_hit": False}):
            pass
        with span("scheduler", attributes={"queue": "default", "batch": 4, "wait_seconds": 0.0001, "slot": 3}):
            pass
        with span("model", attributes={"model": "sent-v1", "batch": 4, "device": "cpu", "precision": "fp16"}):
            pass
        with span("postprocess", attributes={"label": "positive", "confidence": 0.9, "calibrated": True, "topk": 1}):
            pass
        bucket = "short" if length < 100 else "medium" if length <= 500 else "long"
        latency.labels(ROUTE, bucket).observe(time.perf_counter() - start)
        confidence.labels(ROUTE).observe(0.9)
        characters.labels(ROUTE).observe(length)
        tokens.labels(ROUTE).observe(length // 4)
        return answer(query, 0.9)
