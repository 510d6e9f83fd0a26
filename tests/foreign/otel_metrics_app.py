"""A FastAPI app without our recorder, measured by OpenTelemetry, its metrics shown to Prometheus."""

import prometheus_client
from fastapi import FastAPI
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.metrics import MeterProvider

provider = MeterProvider(metric_readers=[PrometheusMetricReader()])
app = FastAPI()
FastAPIInstrumentor.instrument_app(app, meter_provider=provider)
app.mount("/metrics", prometheus_client.make_asgi_app())


@app.get("/digits/{text}")
async def digits(text: str) -> dict[str, int]:
    """Count digits."""
    return {"digits": sum(character.isdigit() for character in text)}
