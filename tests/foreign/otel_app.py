"""A FastAPI app that OpenTelemetry instruments already, and that gets the recorder besides."""

import os

from fastapi import FastAPI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from probes import attach, stage  # 1

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(os.environ["SINK"] + "/v1/traces")))

app = FastAPI()
# Either order will do: the instrumentation wraps whatever middleware there is when the app starts.
if os.environ["ATTACH"] == "first":
    attach(app, service="digits")  # 2
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider)
else:
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider)
    attach(app, service="digits")


@app.get("/digits/{text}")
async def digits(text: str) -> dict[str, int]:
    """Count digits."""
    with stage("digits.count", characters=len(text)):  # 3
        return {"digits": sum(character.isdigit() for character in text)}
