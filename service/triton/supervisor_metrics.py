"""What the supervisor shows of its Triton (job `triton-supervisor`)."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.triton.canary import STATES
from service.triton.supervise import Health

__all__ = ["render"]


class _Once(Collector):
    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        now = self._health
        states = GaugeMetricFamily(
            "model_triton_canary_state", "1 for what Triton's last canary inference came to.", labels=["state"]
        )
        for state in ("starting", *STATES):
            states.add_metric([state], float(state == now.state))
        yield states
        yield CounterMetricFamily(
            "model_triton_restarts", "Times that Triton ended and was started again.", now.restarts
        )
        yield CounterMetricFamily(
            "model_triton_heals", "Times that a dead stub's model was unloaded and loaded.", now.heals
        )
        yield CounterMetricFamily(
            "model_triton_orphans", "Stubs that outlived their Triton and were ended.", now.orphans
        )
        exits = CounterMetricFamily(
            "model_triton_exits", "Ends of Triton, by what its exit code and its last lines tell.", labels=["how"]
        )
        for kind, number in now.exits.items():
            exits.add_metric([kind], number)
        yield exits
        last = GaugeMetricFamily(
            "model_triton_last_exit_info",
            "1 for exit code and kind of Triton's last end that was neither clean nor asked for.",
            labels=["code", "how"],
        )
        if now.last_exit is not None:
            last.add_metric([str(now.last_exit[0]), now.last_exit[1]], 1.0)
        yield last


def render(health: Health) -> bytes:
    """Return the exposition in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(health))
    return generate_latest(registry)
