"""Loads of tokenizers and the texts whose tokens are kept, as series of the service's own port."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from service.tokens import TokensView

__all__ = ["LOAD_EXTREMES", "token_series"]

LOAD_EXTREMES = ("quickest", "slowest")


def token_series(view: TokensView) -> Iterable[Metric]:
    """Return the series; those of the cache alone where there is none would say nothing, and are left out."""
    seconds = GaugeMetricFamily(
        "model_tokenizer_load_seconds",
        "Time of the quickest and the slowest of the answering worker's last loads of a tokenizer; 0 before the first.",
        labels=["which"],
    )
    for which, value in zip(LOAD_EXTREMES, (view.quickest_seconds, view.slowest_seconds), strict=True):
        seconds.add_metric([which], value or 0.0)
    yield seconds
    yield GaugeMetricFamily(
        "model_tokenizer_concurrent_loads",
        "Most of the answering worker's last loads of a tokenizer that ran at one time.",
        view.together,
    )
    yield GaugeMetricFamily(
        "model_tokenizer_cache_bound_texts",
        "Most texts whose tokens a worker may keep, by its settings; 0: none are kept.",
        view.bound,
    )
    yield GaugeMetricFamily(
        "model_tokenizer_cached_texts",
        "Texts whose tokens the answering worker keeps.",
        view.cache.entries if view.cache is not None else 0,
    )
    if view.cache is not None and view.cache.hit_ratio is not None:
        yield GaugeMetricFamily(
            "model_tokenizer_cache_hit_ratio",
            "Share of the texts whose tokens were kept already, since the model was loaded.",
            view.cache.hit_ratio,
        )
