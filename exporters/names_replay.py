"""Metrics of the replay: known texts whose answers are compared with those of the day the model was made."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["AGAINST", "REPLAY", "REPLAY_RESULTS"]

# Words of service/replay.py; held equal by tests/service/test_replay.py.
AGAINST: Final = ("stored", "batch")
REPLAY_RESULTS: Final = ("done", "failed")

REPLAY: Final = (
    Metric(
        "model_replays_total",
        "counter",
        "replays",
        "Replays of texts whose answers are known, by what came of it.",
        labels={"result": REPLAY_RESULTS},
        source="service",
        job="service",
    ),
    Metric(
        "model_replay_difference_ratio",
        "gauge",
        "ratio",
        "Largest difference of a class's probability in the latest replay, by what the answer is compared with.",
        labels={"against": AGAINST},
        source="service",
        job="service",
    ),
    Metric(
        "model_replay_other_tokens_ratio",
        "gauge",
        "ratio",
        "Share of the replayed texts that become other tokens than on the day the model was made.",
        source="service",
        job="service",
    ),
)
"""Absent until a model that has stored answers was replayed."""
