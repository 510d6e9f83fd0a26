"""Metrics of other programs that panels and rules speak about: their names, once, with where they are written down.

They are not ours to name, so units are theirs (microseconds, percent, MiB); whoever shows them converts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["FOREIGN", "ForeignMetric"]

_TRITON: Final = "NVIDIA Triton Inference Server, docs/user_guide/metrics.md"
_DCGM: Final = "NVIDIA dcgm-exporter, etc/default-counters.csv"
_PROMETHEUS: Final = "Prometheus, written about each scrape and each rule"


@dataclass(frozen=True)
class ForeignMetric:
    """A metric of another program.

    Attributes:
        name: As that program exposes it.
        kind: counter or gauge.
        unit: In words.
        labels: That queries may name.
        source: The program, and where the name is written down.
    """

    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    source: str


_MODEL: Final = ("model", "version")
_GPU: Final = ("gpu", "UUID", "device", "modelName", "Hostname")
_ALERT: Final = ("alertname", "layer", "severity", "slug", "kind", "channel")


def _triton(name: str, kind: str, unit: str, *labels: str) -> ForeignMetric:
    return ForeignMetric(f"nv_inference_{name}", kind, unit, (*_MODEL, *labels), _TRITON)


def _dcgm(name: str, kind: str, unit: str) -> ForeignMetric:
    return ForeignMetric(f"DCGM_FI_{name}", kind, unit, _GPU, _DCGM)


FOREIGN: Final[Mapping[str, ForeignMetric]] = {
    metric.name: metric
    for metric in (
        _triton("request_success", "counter", "requests"),
        _triton("request_failure", "counter", "requests", "reason"),
        _triton("count", "counter", "inferences"),
        _triton("exec_count", "counter", "executions"),
        _triton("pending_request_count", "gauge", "requests"),
        _triton("request_duration_us", "counter", "microseconds"),
        _triton("queue_duration_us", "counter", "microseconds"),
        _triton("compute_input_duration_us", "counter", "microseconds"),
        _triton("compute_infer_duration_us", "counter", "microseconds"),
        _triton("compute_output_duration_us", "counter", "microseconds"),
        _dcgm("DEV_GPU_UTIL", "gauge", "percent"),
        _dcgm("DEV_FB_USED", "gauge", "MiB"),
        _dcgm("DEV_FB_FREE", "gauge", "MiB"),
        _dcgm("DEV_GPU_TEMP", "gauge", "celsius"),
        _dcgm("DEV_POWER_USAGE", "gauge", "watts"),
        _dcgm("DEV_SM_CLOCK", "gauge", "MHz"),
        _dcgm("DEV_XID_ERRORS", "gauge", "code of the last error"),
        _dcgm("PROF_GR_ENGINE_ACTIVE", "gauge", "ratio"),
        _dcgm("PROF_PIPE_TENSOR_ACTIVE", "gauge", "ratio"),
        _dcgm("PROF_DRAM_ACTIVE", "gauge", "ratio"),
        ForeignMetric("up", "gauge", "1 when the scrape succeeded", (), _PROMETHEUS),
        ForeignMetric("scrape_duration_seconds", "gauge", "seconds", (), _PROMETHEUS),
        ForeignMetric("scrape_samples_scraped", "gauge", "samples", (), _PROMETHEUS),
        ForeignMetric("ALERTS", "gauge", "1 while pending or firing", (*_ALERT, "alertstate"), _PROMETHEUS),
        ForeignMetric("ALERTS_FOR_STATE", "gauge", "seconds since 1970", _ALERT, _PROMETHEUS),
    )
}
