"""Metrics of the tokenizer: how long it took to load, and the texts whose tokens are kept."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["LOAD_EXTREMES", "TOKENS"]

# Words of service/token_metrics.py; held equal by tests/service/test_tokens.py.
LOAD_EXTREMES: Final = ("quickest", "slowest")

TOKENS: Final = (
    Metric(
        "model_tokenizer_load_seconds",
        "gauge",
        "seconds",
        "Time of the quickest and the slowest of the answering worker's last loads of a tokenizer; 0 before the first.",
        labels={"which": LOAD_EXTREMES},
        source="service",
        job="service",
    ),
    Metric(
        "model_tokenizer_concurrent_loads",
        "gauge",
        "loads",
        "Most of the answering worker's last loads of a tokenizer that ran at one time.",
        source="service",
        job="service",
    ),
    Metric(
        "model_tokenizer_cache_bound_texts",
        "gauge",
        "texts",
        "Most texts whose tokens a worker may keep, by its settings; 0: none are kept.",
        source="service",
        job="service",
    ),
    Metric(
        "model_tokenizer_cached_texts",
        "gauge",
        "texts",
        "Texts whose tokens the answering worker keeps.",
        source="service",
        job="service",
    ),
    Metric(
        "model_tokenizer_cache_hit_ratio",
        "gauge",
        "ratio",
        "Share of the texts whose tokens were kept already, since the model was loaded; absent where none are kept.",
        source="service",
        job="service",
    ),
)
