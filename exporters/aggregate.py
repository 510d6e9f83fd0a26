"""Rows into counts: pure, vectorised, exact.

Source   committed rows of one ring file, and that file's strings.
Error    none: durations are whole nanoseconds, confidences are rounded to a billionth.
Cost     O(rows) in numpy, one pass per metric whatever its labels; no Python loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from exporters.aggregate_images import count_images
from exporters.aggregate_scheduler import count_scheduling
from exporters.input_classes import bucket_index
from exporters.input_counts import count_inputs
from exporters.names import INPUT_BUCKETS, METRICS, OTHER, OUTCOMES
from exporters.names_canary import ROLES
from exporters.totals import Labels, Totals
from exporters.version_counts import answering_role, count_versions

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
_LOW: Final = 2**32 - 1


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
        values = rows[column][rows[column] >= 0]
        _observe(delta, metric, [()], np.zeros(len(values), np.int64), values)
    count_inputs(rows, strings, delta)
    _observe_confidence(rows, strings, delta)
    _observe_filters(rows, strings, delta)
    _observe_stages(rows, stages, delta)
    count_scheduling(rows, strings, delta, _observe)
    count_images(rows, strings, delta, _observe)
    count_versions(rows, strings, delta, _observe)
    return delta


def text_of(strings: Sequence[str], index: int, absent: str) -> str:
    """Return the string at *index*: *absent* for 0, "(other)" for an index that the table does not have."""
    if index == 0:
        return absent
    return strings[index] if index < len(strings) else OTHER


def _count_requests(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Count requests by route and outcome; a route that is seen gets all outcomes, so that a first error is a rise."""
    # An outcome that a newer writer knows and we do not is counted as an error, never dropped.
    outcomes = np.where(rows["outcome"] < len(OUTCOMES), rows["outcome"], OUTCOMES.index("error"))
    pairs = np.bincount(_ids(rows["route"], strings) * len(OUTCOMES) + outcomes)
    for pair in np.flatnonzero(pairs).tolist():
        route = text_of(strings, pair // len(OUTCOMES), UNMATCHED)
        for outcome in OUTCOMES:
            delta.add("model_requests_total", (route, outcome), 0)
        delta.add("model_requests_total", (route, OUTCOMES[pair % len(OUTCOMES)]), int(pairs[pair]))


def _count_refused(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Count refused requests by reason; one outside the closed set is "other".

    Where the app named no reason its status may: a router answers an unknown path or method by itself.
    """
    chosen = rows["outcome"] == _REFUSED
    if not chosen.any():
        return
    refused = rows[chosen]
    allowed = METRICS["model_refused_total"].labels["reason"]
    # one number for both, as reason and status are 32 and 16 bits wide at most
    pairs = refused["reason"].astype(np.int64) << 16 | refused["http_status"].astype(np.int64)
    for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
        reason = text_of(strings, int(pair) >> 16, _REASON_OF_STATUS.get(int(pair) & 0xFFFF, "other"))
        delta.add("model_refused_total", (reason if reason in allowed else "other",), int(count))


def _observe_latency(rows: Rows, delta: Totals) -> None:
    """Observe the durations of answered requests by length class."""
    answered = (rows["outcome"] == _OK) | (rows["outcome"] == _DEGRADED)
    classes = bucket_index(rows["input_length"][answered])
    _observe(
        delta, "model_latency_seconds", [(name,) for name in INPUT_BUCKETS], classes, rows["duration_ns"][answered]
    )


def _observe_confidence(rows: Rows, strings: Sequence[str], delta: Totals) -> None:
    """Observe confidences by answered class and version; one outside 0..1 is not a confidence and is left out."""
    confidences = rows["confidence"]
    with np.errstate(invalid="ignore"):
        valid = (confidences >= 0.0) & (confidences <= 1.0)
    labels, groups = _texts(rows["label"][valid], strings, "other")
    allowed = METRICS["model_output_confidence"].labels["label"]
    steps = np.rint(confidences[valid] * _BILLION).astype(np.int64)
    names = [(label if label in allowed else "other", role) for label in labels for role in ROLES]
    roles = answering_role(rows, strings)[valid]
    _observe(delta, "model_output_confidence", names, groups * len(ROLES) + roles, steps)


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
    families, groups = _texts(rows["agent_family"][seen], strings, NO_AGENT)
    _observe(delta, "model_filter_seconds", [(family,) for family in families], groups, steps[seen])


def _observe_stages(rows: Rows, stages: Iterable[str], delta: Totals) -> None:
    """Observe how long each stage ran, in those requests in which it did."""
    names = [stage for stage in stages if f"{stage}/start_ns" in (rows.dtype.names or ())]
    if not names:
        return
    ran = np.stack([rows[f"{stage}/start_ns"] for stage in names]) != NEVER
    durations = np.stack([rows[f"{stage}/duration_ns"] for stage in names])
    _observe(delta, "model_stage_seconds", [(stage,) for stage in names], np.nonzero(ran)[0], durations[ran])


def _ids(column: npt.NDArray[Any], strings: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return string ids, those that the table does not have as one more: a damaged id must not size an array."""
    ids: npt.NDArray[np.int64] = np.minimum(column, len(strings)).astype(np.int64)
    return ids


def _texts(column: npt.NDArray[Any], strings: Sequence[str], absent: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the texts that occur in a string column, and for each row the index of its own among them."""
    ids = _ids(column, strings)
    present = np.flatnonzero(np.bincount(ids))
    return [text_of(strings, index, absent) for index in present.tolist()], np.searchsorted(present, ids)


def _observe(
    delta: Totals, name: str, labels: Sequence[Labels], groups: npt.NDArray[np.int64], steps: npt.NDArray[Any]
) -> None:
    """Add whole-numbered observations (nanoseconds, billionths, or counts) to the histograms of *name*.

    Args:
        delta: Where to add them.
        name: A histogram of `METRICS`.
        labels: The label values of each group.
        groups: Which group each observation belongs to.
        steps: The observations; none is negative.
    """
    if not len(steps):
        return
    bounds = _STEP_BOUNDS[name]
    width, values = len(bounds) + 1, steps.astype(np.int64)
    # side="left": a value that equals a bound belongs below it, as Prometheus' `le` says.
    places = groups * width + np.searchsorted(bounds, values, side="left")
    counts = np.bincount(places, minlength=len(labels) * width).reshape(len(labels), width)
    # In halves, since bincount adds floats: sums of 32 bits are exact up to two million rows.
    low = np.bincount(groups, values & _LOW, len(labels)).tolist()
    high = np.bincount(groups, values >> 32, len(labels)).tolist()
    for group in np.flatnonzero(counts.any(axis=1)).tolist():
        delta.observe(name, labels[group], counts[group].tolist(), (int(high[group]) << 32) + int(low[group]))


_STEP_BOUNDS: Final = {
    metric.name: np.array(
        [round(bound * (_BILLION if metric.unit in ("seconds", "ratio") else 1)) for bound in metric.buckets],
        dtype=np.int64,
    )
    for metric in METRICS.values()
    if metric.buckets
}
