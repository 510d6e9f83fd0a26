"""The canary in the service's own metrics; counts come from the shared state, so that every worker shows the same."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from service.canary.state import ROLLBACK_REASONS
from service.canary.versions import STATES, CanaryView

__all__ = ["canary_series"]


def canary_series(now: CanaryView) -> Iterable[Metric]:
    """Return the series of a canary, or of there being none."""
    yield GaugeMetricFamily(
        "model_canary_share_ratio", "Share of the sessions that go to the canary, 0 to 1.", now.share
    )
    states = GaugeMetricFamily(
        "model_canary_state",
        "1 for the state of the canary in the answering worker, 0 for the others.",
        labels=["state"],
    )
    for state in STATES:
        states.add_metric([state], float(state == now.state))
    yield states
    rollbacks = CounterMetricFamily(
        "model_canary_rollbacks", "Times that a canary was taken back, by why, over all workers.", labels=["reason"]
    )
    for reason in ROLLBACK_REASONS:
        rollbacks.add_metric([reason], now.rollbacks.get(reason, 0))
    yield rollbacks
    versions = GaugeMetricFamily(
        "model_version_info", "Always 1; which version of the model has which role.", labels=["role", "model"]
    )
    for role, name in now.versions.items():
        versions.add_metric([role, name], 1.0)
    yield versions
