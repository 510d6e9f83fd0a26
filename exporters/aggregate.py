"""Rows into counts: pure, vectorised, exact.

Source   committed rows of one ring file, and that file's strings.
Error    none: durations are whole nanoseconds, confidences are rounded to a billionth.
Cost     O(rows) in numpy, a few passes per stage; no Python loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.names import INPUT_BUCKETS, METRICS, OTHER, OUTCOMES
from exporters.totals import Totals

__all__ = ["NEVER", "aggregate", "bucket_index", "text_of"]

Rows = npt.NDArray[Any]

# A stage whose start is this did not run (docs/architecture.md, section 2).
NEVER: Final = 2**64 - 1
UNMATCHED: Final = "(unmatched)"
NO_AGENT: Final = "(none)"
# The service's stages up to the model.
_BODY, _FILTERS, _HAND_OVER = "network.receive", "sentiment.preprocess", "scheduler.dispatch"

_OK, _REFUSED, _DEGRADED = OUTCOMES.index("ok"), OUTCOMES.index("refused"), OUTCOMES.index("degraded")
# RFC 9110, sections 15.5.5 and 15.5.6.
_REASON_OF_STATUS: Final = {404: "not_found", 405: "method"}
_BILLION: Final = 1_000_000_000


def aggregate(rows: Rows, strings: Sequence[str], stages: Iterable[str]) -> Totals:
    """Return what *rows* add to the totals.

    Args:
        rows: Structured array with the columns of docs/architecture.md, section 2.
        strings: The ring file's string table; a string column holds indexes into it, 0 for absent.
        stages: Names of the stages whose columns *rows* has.
    """
    delta = Totals()
    if not len(rows):
        return delta
    delta.add("telemetry_rows_read_total", (), len(rows))
    _count_requests(rows, strings, delta)
    _count_refused(rows, strings, delta)
    _observe_latency(rows, delta)
    for metric, column in (("model_input_length_characters", "input_length"), ("model_input_tokens", "tokens")):
        values = rows[column]
        _observe(delta, metric, (), values[values >= 0])
    _observe_confidence(rows, strings, delta)
    _observe_filters(rows, strings, delta)
    for stage in stages:
        if f"{stage}/start_ns" in (rows.dtype.names or ()):
            ran = rows[f"{stage}/start_ns"] != NEVER
            if ran.any():
                _observe(delta, "model_stage_seconds", (stage,), rows[f"{stage}/duration_ns"][ran])
    return delta


def bucket_index(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each input length's index into `INPUT_BUCKETS` (the vector form of `names.input_bucket`)."""
    return np.select([lengths < 0, lengths < 100, lengths <= 500], [3, 0, 1], default=2)


def text_of(strings: Sequence[str], index: int, absent: str) -> str:
    """Return the string at *index*: *absent* for 0, "(other)" for an index that the table does not have."""
    if index == 0:
        return absent
    return strings[index] if index < len(strings) else OTHER


def _count_requests(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Count requests by route and outcome; a route that is seen gets all outcomes, so that a first error is a rise."""
    # An outcome that a newer writer knows and we do not is counted as an error, never dropped.
    outcomes = np.where(rows["outcome"] < len(OUTCOMES), rows["outcome"], OUTCOMES.index("error"))
    pairs = rows["route"].astype(np.int64) * len(OUTCOMES) + outcomes
    for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
        route = text_of(strings, int(pair) // len(OUTCOMES), UNMATCHED)
        for outcome in OUTCOMES:
            delta.add("model_requests_total", (route, outcome), 0)
        delta.add("model_requests_total", (route, OUTCOMES[int(pair) % len(OUTCOMES)]), int(count))


def _count_refused(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Count refused requests by reason; one outside the closed set is "other".

    Where the app named no reason its status may: a router answers an unknown path or method by itself.
    """
    refused = rows[rows["outcome"] == _REFUSED]
    allowed = METRICS["model_refused_total"].labels["reason"]
    # one number for both, as reason and status are 32 and 16 bits wide at most
    pairs = refused["reason"].astype(np.int64) << 16 | refused["http_status"].astype(np.int64)
    for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
        reason = text_of(strings, int(pair) >> 16, _REASON_OF_STATUS.get(int(pair) & 0xFFFF, "other"))
        delta.add("model_refused_total", (reason if reason in allowed else "other",), int(count))


def _observe_latency(rows: Rows, delta: Totals) -> None:
    """Observe the durations of answered requests by length class."""
    answered = (rows["outcome"] == _OK) | (rows["outcome"] == _DEGRADED)
    durations = rows["duration_ns"][answered]
    classes = bucket_index(rows["input_length"][answered])
    for position, bucket in enumerate(INPUT_BUCKETS):
        _observe(delta, "model_latency_seconds", (bucket,), durations[classes == position])


def _observe_confidence(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Observe confidences by answered class; one outside 0..1 is not a confidence and is left out."""
    confidences = rows["confidence"]
    with np.errstate(invalid="ignore"):
        valid = (confidences >= 0.0) & (confidences <= 1.0)
    confidences, labels = confidences[valid], rows["label"][valid]
    allowed = METRICS["model_output_confidence"].labels["label"]
    for index in np.unique(labels):
        label = text_of(strings, int(index), "other")
        steps = np.rint(confidences[labels == index] * _BILLION).astype(np.int64)
        _observe(delta, "model_output_confidence", (label if label in allowed else "other",), steps)


def _observe_filters(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Observe by family of agents what ran in front of the model, in the stage for it or in middleware around it.

    A request that reached the executor is measured from its start to there, less the wait for its body; one that was
    refused before by its stage alone. Where there are no such stages nothing is observed.
    """
    names = rows.dtype.names or ()
    if not {f"{stage}/start_ns" for stage in (_BODY, _FILTERS, _HAND_OVER)} <= set(names):
        return
    handed, filtered = rows[f"{_HAND_OVER}/start_ns"] != NEVER, rows[f"{_FILTERS}/start_ns"] != NEVER
    body = np.where(rows[f"{_BODY}/start_ns"] != NEVER, rows[f"{_BODY}/duration_ns"], 0).astype(np.int64)
    before = np.where(handed, rows[f"{_HAND_OVER}/start_ns"], 0).astype(np.int64) - body
    steps = np.maximum(np.where(handed, before, rows[f"{_FILTERS}/duration_ns"].astype(np.int64)), 0)
    seen = handed | filtered
    for index in np.unique(rows["agent_family"][seen]):
        family = text_of(strings, int(index), NO_AGENT)
        _observe(delta, "model_filter_seconds", (family,), steps[seen & (rows["agent_family"] == index)])


def _observe(delta: Totals, name: str, labels: tuple[str, ...], steps: npt.NDArray[Any]) -> None:
    """Add whole-numbered observations (nanoseconds, billionths, or counts) to the histogram *name*."""
    if not len(steps):
        return
    bounds = _STEP_BOUNDS[name]
    # side="left": a value that equals a bound belongs below it, as Prometheus' `le` says.
    places = np.searchsorted(bounds, steps.astype(np.int64), side="left")
    counts = np.bincount(places, minlength=len(bounds) + 1)
    delta.observe(name, labels, counts.tolist(), int(steps.sum(dtype=np.int64)))


_STEP_BOUNDS: Final = {
    metric.name: np.array(
        [round(bound * (_BILLION if metric.unit in ("seconds", "ratio") else 1)) for bound in metric.buckets],
        dtype=np.int64,
    )
    for metric in METRICS.values()
    if metric.buckets
}
