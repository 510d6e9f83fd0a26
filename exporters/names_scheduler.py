"""Metrics of what stands in front of the model, counted from rows: waiting, batches, padding."""

from __future__ import annotations

from typing import Final

from exporters.buckets import WAIT_BUCKETS
from exporters.labels import INPUT_BUCKETS
from exporters.metric import Metric

__all__ = ["QUEUES", "SCHEDULER", "SLOT_USES"]

# Words of service/scheduler/lanes.py; held equal by tests/exporters/test_aggregate_scheduler.py.
QUEUES: Final = ("vip", "normal", "long")
SLOT_USES: Final = ("text", "padding")
_COUNTS: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)

SCHEDULER: Final = (
    Metric(
        "model_queue_wait_seconds",
        "histogram",
        "seconds",
        "Time from a request's coming to its queue until a thread works on it, of those that were answered.",
        labels={"queue": QUEUES, "input_bucket": INPUT_BUCKETS},
        buckets=WAIT_BUCKETS,
    ),
    Metric(
        "model_connection_wait_seconds",
        "histogram",
        "seconds",
        "Time for which the call of a request waited inside the client for a free connection to the model's server.",
        buckets=WAIT_BUCKETS,
    ),
    Metric(
        "model_queue_depth_requests",
        "histogram",
        "requests",
        "Requests that waited in its queue already when one came, refused ones included.",
        labels={"queue": QUEUES},
        buckets=_COUNTS,
    ),
    Metric(
        "model_batch_size_requests",
        "histogram",
        "requests",
        "Requests of the call in which each request was answered: counted once for each of them.",
        buckets=_COUNTS[1:],
    ),
    Metric(
        "model_token_slots_total",
        "counter",
        "slots",
        "Places of the token tensors that the model was given, by what they held.",
        labels={"use": SLOT_USES},
    ),
)
