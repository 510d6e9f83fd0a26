"""OpenTelemetry's own FastAPI instrumentation around the service: its server span is the parent of our spans.

Off by default: it costs more than all our instruments together (docs/overhead.md). Who has it on anyway, because the
rest of the company's traces come from it, sees one trace: the recorder hangs its row below the span that it finds, and
the exporter keeps what that span's sampler keeps. Where spans go is OpenTelemetry's business: OTEL_SERVICE_NAME,
OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and the others of its specification. FastAPI of late makes such a span
by itself where the process has a provider; it leaves that to this instrumentation where both are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.settings import ENV_PREFIX, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

__all__ = ["instrument"]


def instrument(app: FastAPI) -> Callable[[], None]:
    """Put OpenTelemetry's instrumentation around the app, and start a provider where the process has none.

    Args:
        app: The app, with all its middleware.

    Returns:
        What sends the last spans when the app ends; it does nothing where the provider is somebody else's.

    Raises:
        SettingsError: If the packages are missing.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        mend = f"run `pip install 'inferdeck[otel]'` or set {ENV_PREFIX}OPENTELEMETRY=false"
        raise SettingsError(f"{ENV_PREFIX}OPENTELEMETRY: {error.name} is missing; {mend}") from error
    close: Callable[[], None] = _nothing
    # A provider that was set before, by `opentelemetry-instrument` or a middleware of the settings, stays the one.
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        close = provider.shutdown
    # Not one span more for each message in and out: the recorder has them as stages.
    FastAPIInstrumentor.instrument_app(app, exclude_spans=["receive", "send"])
    return close


def _nothing() -> None:
    """Leave the provider to whoever set it."""
