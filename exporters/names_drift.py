"""Metrics of how far live inputs are from those of the training."""

from __future__ import annotations

from typing import Final

from exporters.metric import Metric

__all__ = ["DRIFT", "DRIFT_FEATURE_LIMIT"]

DRIFT_FEATURE_LIMIT: Final = 32
"""Features of a reference, at most (exporters/drift/reference.py)."""

DRIFT: Final = (
    Metric(
        "data_drift_score",
        "gauge",
        "ratio",
        "Distance of the latest answered requests from the training set, 0 to 1: the Kolmogorov-Smirnov statistic of "
        "numbers, Cramer's V of categories; absent while too few were seen.",
        labels={"feature": ()},
        limits={"feature": DRIFT_FEATURE_LIMIT},
    ),
    Metric(
        "data_drift_state",
        "gauge",
        "state",
        "1 while the distance is large, no accident, and lasts over several looks; 0 else.",
        labels={"feature": ()},
        limits={"feature": DRIFT_FEATURE_LIMIT},
    ),
    Metric(
        "data_drift_window_rows",
        "gauge",
        "rows",
        "Answered requests that the score is made of.",
        labels={"feature": ()},
        limits={"feature": DRIFT_FEATURE_LIMIT},
    ),
    Metric(
        "data_drift_up",
        "gauge",
        "state",
        "1 while there is a training's reference to compare with, 0 while there is none that can be read.",
        source="reference of the training",
    ),
    Metric(
        "data_preprocess_mismatch_state",
        "gauge",
        "state",
        "1 while texts are cleaned or cut otherwise than in the training of the model, 0 while alike; by fingerprints.",
        labels={"trained": (), "served": ()},
        limits={"trained": 1, "served": 1},
        source="service",
        job="service",
    ),
)
