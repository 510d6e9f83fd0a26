"""The latest replay as series of the service's own port."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from service.replay import ReplayView

__all__ = ["replay_series"]


def replay_series(view: ReplayView) -> Iterable[Metric]:
    """Return the series; those of what is compared only once something was."""
    replays = CounterMetricFamily(
        "model_replays", "Replays of texts whose answers are known, by what came of it.", labels=["result"]
    )
    replays.add_metric(["done"], view.done)
    replays.add_metric(["failed"], view.failed)
    yield replays
    if view.other_tokens is None:
        return
    differences = GaugeMetricFamily(
        "model_replay_difference_ratio",
        "Largest difference of a class's probability in the latest replay, by what the answer is compared with.",
        labels=["against"],
    )
    for against, value in view.differences.items():
        differences.add_metric([against], value)
    yield differences
    yield GaugeMetricFamily(
        "model_replay_other_tokens_ratio",
        "Share of the replayed texts that become other tokens than on the day the model was made.",
        view.other_tokens,
    )
