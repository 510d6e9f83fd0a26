"""Labels, their closed sets of values, and the most values that an open one may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "AGENT_LIMIT",
    "ARCHIVE_ERRORS",
    "ARCHIVE_LOST",
    "CROWDED_REASONS",
    "DROPPED_REASONS",
    "INPUT_BUCKETS",
    "KEPT_REASONS",
    "LABELS",
    "LAYERS",
    "LOST_REASONS",
    "OBJECTIVES_SECONDS",
    "OTHER",
    "OUTCOMES",
    "PHASE_LIMIT",
    "PROBE_LIMIT",
    "REASON_LIMIT",
    "REFUSED_REASONS",
    "ROUTE_LIMIT",
    "SENTIMENTS",
    "STAGE_LIMIT",
    "STATE_ERRORS",
    "UNRECORDED_REASONS",
    "WORKER_ENDS",
    "WORKER_LIMIT",
    "input_bucket",
]

OTHER: Final = "(other)"

# Index = the row's `outcome` column (docs/architecture.md, section 2).
OUTCOMES: Final = ("ok", "refused", "error", "degraded", "disconnected")
INPUT_BUCKETS: Final = ("short", "medium", "long", "unknown")
# requirements.md, row A10: the longest acceptable answer per length of input.
OBJECTIVES_SECONDS: Final[Mapping[str, float]] = {"short": 0.3, "medium": 0.8, "long": 1.5}
REFUSED_REASONS: Final = (
    "schema",
    "too_long",
    "illegal_characters",
    "body_too_large",
    "not_found",
    "method",
    "queue_full",
    "rate_limited",
    "expired",
    "memory",
    "other",
)
SENTIMENTS: Final = ("negative", "neutral", "positive", "other")

ROUTE_LIMIT: Final = 32
# The recorder knows about 25 families (probes/incoming.py); the agents themselves are never stored.
AGENT_LIMIT: Final = 32
STAGE_LIMIT: Final = 64
WORKER_LIMIT: Final = 64
REASON_LIMIT: Final = 32
PROBE_LIMIT: Final = 32
PHASE_LIMIT: Final = 32

# Why rows were not archived for now, and why some never will be.
ARCHIVE_ERRORS: Final = ("disk_full", "unwritable", "damaged", "internal")
ARCHIVE_LOST: Final = ("overwritten", "torn")
# Why the exporter's state could not be written.
STATE_ERRORS: Final = ("disk_full", "unwritable")
LOST_REASONS: Final = ("overwritten", "torn", "no_state", "vanished")
# Words of the recorder (probes): why a request left no row that can be read.
UNRECORDED_REASONS: Final = (
    "begin",
    "commit",
    "disk_full",
    "file_unusable",
    "folder_foreign",
    "folder_not_private",
    "folder_unusable",
)
# Words of the recorder: why a label, attribute or stage was refused at its registration instead of growing without end.
CROWDED_REASONS: Final = (
    "string_budget",
    "string_table_full",
    "attribute_refused",
    "stage_refused",
    "journal_full",
)
# A recorder that is closed says so on its last status page; one that is killed cannot.
WORKER_ENDS: Final = ("clean", "died")
# Where a fault can lie; a symptom names none: which one it is, is what its runbook finds out.
LAYERS: Final = (
    "client",
    "network",
    "preprocess",
    "scheduler",
    "tokenizer",
    "model",
    "gpu",
    "runtime",
    "host",
    "data",
    "telemetry",
)
DROPPED_REASONS: Final = ("queue_full", "too_large", "rejected", "deadline", "not_delivered_at_exit", "failed")
KEPT_REASONS: Final = (
    "error",
    "degraded",
    "unfinished",
    "low_quality",
    "low_confidence",
    "canary_difference",
    "slow",
    "upstream",
    "first",
    "drift",
    "random",
)

# Labels that are allowed at all, with what they hold. Ids of requests, sessions or traces never appear here.
LABELS: Final[Mapping[str, str]] = {
    "route": "route template of the app",
    "outcome": "how the request ended",
    "reason": "why, from a closed or bounded set",
    "which": "quickest or slowest of the last few",
    "input_bucket": "length class of the input",
    "stage": "business step",
    "label": "class that the model answered",
    "device_type": "kind of device of the caller, by its own word",
    "role": "which of two versions of the model",
    "agent_family": "family of the caller's user agent, from the recorder's closed list",
    "queue": "queue in front of the model",
    "turn": "whether the service became degraded, or recovered",
    "event": "what became of an answer that is fetched later",
    "use": "what a place of a token tensor held",
    "worker": "ordinal of the worker process",
    "source": "which heartbeat",
    "generation": "generation of the garbage collector",
    "feature": "what of an input or answer is compared with the training",
    "waits": "what a thread that does not move waits for",
    "phase": "phase of the start",
    "probe": "sensor inside the service",
    "state": "state of a ring file",
    "how": "how a worker process, or Triton, ended",
    "code": "exit code of a process",
    "folder": "which of the product's folders",
    "modality": "kind of input: text, image",
    "against": "what a replayed answer is compared with: stored, batch",
    "kind": "kind of personal data",
    "mask_format": "version of the form that masked personal data has",
    "link": "link of the filter chain",
    "result": "what became of it",
    "kernel": "node of the model's graph",
    "gpu": "number of a card, and of a MIG instance on it",
    "name": "model of a card",
    "driver": "version of the driver",
    "reading": "what a card is asked for",
    "clock": "part of a card that a clock drives",
    "ecc": "whether a memory error could be corrected",
    "owner": "whose process it is",
    "process": "file name of a program",
    "version": "version of the service",
    "commit": "source commit",
    "model": "fingerprint of the model",
    "config": "fingerprint of the configuration",
    "trained": "fingerprint of cleaning and chunking in the training of the model",
    "served": "fingerprint of cleaning and chunking in the service",
}


def input_bucket(length: int) -> str:
    """Return the length class of an input (requirements.md, row A10).

    Args:
        length: Characters; negative when unknown.
    """
    if length < 0:
        return "unknown"
    if length < 100:
        return "short"
    return "medium" if length <= 500 else "long"
