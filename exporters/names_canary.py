"""Metrics of two versions of the model that are served at one time."""

from __future__ import annotations

from typing import Final

from exporters.buckets import STAGE_BUCKETS
from exporters.metric import Metric

__all__ = ["CANARY", "COMPARISONS", "ROLES", "ROLLBACK_REASONS", "VERSION_RESULTS"]

# Words of service/canary; held equal by tests/exporters/test_version_counts.py.
ROLES: Final = ("stable", "canary")
VERSION_RESULTS: Final = ("ok", "nan", "error", "late", "full")
COMPARISONS: Final = ("same", "flipped", "shed", "failed")
ROLLBACK_REASONS: Final = ("errors", "latency", "flips", "operator")
_STATES: Final = ("none", "loading", "idle", "serving", "rolled_back", "failed")
_DISTANCES: Final = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
# Of one service: the stable version and its canary.
_VERSION_LIMIT: Final = 2

CANARY: Final = (
    Metric(
        "model_version_requests_total",
        "counter",
        "requests",
        "Requests while two versions are served, by the version that was asked and what came of it: an answer, or why "
        "the stable version answered in its place.",
        labels={"role": ROLES, "result": VERSION_RESULTS},
    ),
    Metric(
        "model_version_seconds",
        "histogram",
        "seconds",
        "Time in the model (stage model.forward) while two versions are served, by the version that answered.",
        labels={"role": ROLES},
        buckets=STAGE_BUCKETS,
    ),
    Metric(
        "model_version_comparisons_total",
        "counter",
        "comparisons",
        "Answers of the canary that were to be compared with the stable version's, by what came of it.",
        labels={"result": COMPARISONS},
    ),
    Metric(
        "model_version_distance_ratio",
        "histogram",
        "ratio",
        "How far apart the two versions' probabilities were, 0 to 1 (total variation), of compared answers.",
        buckets=_DISTANCES,
    ),
    Metric(
        "model_canary_share_ratio",
        "gauge",
        "ratio",
        "Share of the sessions that go to the canary, 0 to 1.",
        source="service",
        job="service",
    ),
    Metric(
        "model_canary_state",
        "gauge",
        "state",
        "1 for the state of the canary in the answering worker, 0 for the others.",
        labels={"state": _STATES},
        source="service",
        job="service",
    ),
    Metric(
        "model_canary_rollbacks_total",
        "counter",
        "rollbacks",
        "Times that a canary was taken back, by why, over all workers.",
        labels={"reason": ROLLBACK_REASONS},
        source="service",
        job="service",
    ),
    Metric(
        "model_version_info",
        "gauge",
        "info",
        "Always 1; which version of the model has which role.",
        labels={"role": (), "model": ()},
        limits={"role": _VERSION_LIMIT, "model": _VERSION_LIMIT},
        source="service",
        job="service",
    ),
)
