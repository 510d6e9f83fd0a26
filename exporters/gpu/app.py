"""The GPU exporter as a process of its own: `python -m exporters.gpu`, for machines where no service records rows."""

from __future__ import annotations

import contextlib
import logging
import threading

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from exporters.collector import Snapshot as Shown
from exporters.collector import families, registry_of
from exporters.gpu.gauges import gpu_gauges
from exporters.gpu.nvml import NvmlReader
from exporters.gpu.sampler import GpuSampler
from exporters.serving import listen, only_known_hosts, run_until_stopped, serve_app, stopped_by_signals
from exporters.totals import Totals

__all__ = ["GpuSettings", "main", "make_gpu_app"]

_log = logging.getLogger("exporters.gpu")


class GpuSettings(BaseSettings):
    """What can be set: `INFERDECK_GPU_<FIELD>`.

    Attributes:
        host: Address to listen on. What is shown there are figures of cards and names of programs, no personal data.
        port: Port to listen on; 0 takes a free one.
        interval_seconds: Pause between two looks at the cards.
    """

    model_config = SettingsConfigDict(env_prefix="INFERDECK_GPU_", extra="ignore", env_ignore_empty=True)

    host: str = "127.0.0.1"
    port: int = Field(default=9466, ge=0, le=65535)
    interval_seconds: float = Field(default=5.0, gt=0, le=300)


def make_gpu_app(sampler: GpuSampler, host: str = "127.0.0.1") -> Starlette:
    """Return the web application: /metrics and /healthz."""

    def collect() -> list[Family]:
        # No series count: that one belongs to the exporter of rows.
        shown = Shown(Totals(), gpu_gauges(sampler.latest(), None))
        return [family for family in families(shown) if family.name != "telemetry_series"]

    registry = registry_of(collect)

    def metrics(request: Request) -> Response:
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(registry), headers={"content-type": content_type})

    def healthz(_request: Request) -> Response:
        latest = sampler.latest()
        cards = {card.label: card.state for card in latest.cards}
        # The exporter is well when it can say that the cards are not.
        stuck = latest.state == "silent"
        return JSONResponse(
            {"status": "stuck" if stuck else "ok", "nvml": latest.state, "cards": cards}, 503 if stuck else 200
        )

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/healthz", healthz)], middleware=[only_known_hosts(host)]
    )


def main() -> int:
    """Run the GPU exporter until SIGTERM or SIGINT.

    Returns:
        Exit status: 0 stopped, 2 could not start (one line on stderr says why, and the mend).
    """
    return run_until_stopped(lambda: _serve(GpuSettings()), "INFERDECK_GPU_")


def _serve(settings: GpuSettings) -> None:
    """Serve until a signal.

    Raises:
        CannotStartError: If the port is taken.
    """
    stopping = threading.Event()
    with (
        stopped_by_signals(stopping),
        contextlib.closing(listen(settings.host, settings.port, "INFERDECK_GPU_PORT")) as listener,
    ):
        reader = NvmlReader()
        sampler = GpuSampler(reader.read, settings.interval_seconds)
        sampler.start()
        host, port = listener.getsockname()[:2]
        _log.info("metrics on http://%s:%d/metrics", host, port)
        try:
            serve_app(make_gpu_app(sampler, settings.host), listener, stopping)
        finally:
            sampler.stop()
            reader.close()
