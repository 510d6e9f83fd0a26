"""Why one request took so long: each stage against its usual time, waiting, and what blocked the loop meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from exporters.archive.reader import Archive
from exporters.batch_lookup import Batch, widest_of
from exporters.trace_view import OUTSIDE_STAGES, SpanView, TraceView
from runbooks.impact import iso
from runbooks.row_source import RowSource
from runbooks.rows import Episode, Rows
from runbooks.slowness import LEAST_NORMAL_ROWS, SLOW_EXTRA_SECONDS, SLOW_FACTOR
from runbooks.source_missing import SourceMissingError

__all__ = ["explain", "explain_traces"]

# Requests of a quarter of an hour around a trace say what was usual then.
AROUND_SECONDS: Final = 900.0
MOST_ARCHIVED: Final = 10_000
# Medians of so many are as good as those of a whole ring, and take a quarter of the time.
MOST_HELD: Final = 4_096
# A cause must account for this share of the extra time to be called the reason.
LEAST_SHARE: Final = 0.5
# Slugs of the failures that a single request can tell.
BLOCKED: Final = "event_loop_blocked"
WORKER_GONE: Final = "service_down"
# Stages that work on a whole tensor, padding included.
AS_WIDE_AS_THE_BATCH: Final = ("triton.client", "model.forward", "fallback.cpu", "vectorizer")


@dataclass(frozen=True)
class _Usual:
    """What requests of the same length class usually take, in seconds; `stages` holds each place's own time."""

    total: float
    stages: dict[str, float]


def explain_traces(views: Sequence[TraceView], ring_dir: Path, archive_dir: Path | None = None) -> list[TraceView]:
    """Return traces with `slow_stage` and `why` filled from the rows around them.

    Args:
        views: Traces as looked up.
        ring_dir: Folder of ring files; if it cannot be read the traces say that nothing could be compared.
        archive_dir: Folder of the exporter's archive, for traces whose time the rings no longer hold.
    """
    recent = _collected(RowSource(ring_dir, most_held=MOST_HELD), views, AROUND_SECONDS)
    oldest = float(recent.start_s.min()) if recent is not None and len(recent.start_s) else math.inf
    old = [view for view in views if view.start_unix_ns / 1e9 < oldest] if archive_dir else []
    # Of the archive what came right before: a quarter of an hour of a busy service is a million rows.
    # Of the rings their lives alone: what they hold of that time is in the sample, or too far back for it.
    around = _collected(RowSource(ring_dir, archive_dir, MOST_ARCHIVED, 0), old, 1.0)
    if around is None or len(around.start_s) < LEAST_NORMAL_ROWS:
        around = recent
    told = [explain(view, around if view in old else recent) for view in views]
    # Only now is it known which of them padding made slow: a look for the batches of all would cost more.
    padded = {batch: view.start_unix_ns for view in told if not view.usual and (batch := _padded_in(view))}
    if not padded:
        return told
    widest = widest_of(ring_dir, padded.items(), Archive(archive_dir) if archive_dir else None)
    return [_blaming_padding(view, widest) for view in told]


def _padding(view: TraceView) -> SpanView | None:
    """Return the stage that says that the slow one worked on padding for the most part; None if none does."""
    for span in view.spans:
        ratio = span.attributes.get("padding_ratio")
        if isinstance(ratio, float) and ratio >= LEAST_SHARE and span.attributes.get("widest") is not True:
            return span if view.slow_stage in {span.name, *AS_WIDE_AS_THE_BATCH} else None
    return None


def _padded_in(view: TraceView) -> Batch | None:
    """Return the batch whose padding the slow stage worked on."""
    number = view.spans[0].attributes.get("batch_id") if view.spans and _padding(view) else None
    return (view.ring, number) if isinstance(number, int) and number and not view.cause else None


def _blaming_padding(view: TraceView, widest: Mapping[Batch, str]) -> TraceView:
    """Return a view whose reason says for whom its batch was padded, if that is what its slow stage worked on."""
    batch, span = _padded_in(view), _padding(view)
    if view.usual or batch is None or span is None:
        return view
    trace = widest.get(batch)
    who = f"request {trace} in the same batch" if trace else "a request in the same batch whose row is gone"
    width = span.attributes.get("seq_len")
    to = f" to {width} tokens" if isinstance(width, int) else ""
    return replace(view, why=f"{view.why}: padding{to} because of {who}")


def _collected(source: RowSource, views: Sequence[TraceView], after_s: float) -> Rows | None:
    """Return the requests from a quarter of an hour before the traces on; None when there are none to be had."""
    if not views:
        return None
    starts = [view.start_unix_ns / 1e9 for view in views]
    ends = [start + view.duration_s for start, view in zip(starts, views, strict=True)]
    try:
        return source.collect(min(starts) - AROUND_SECONDS, max(ends) + after_s)
    except SourceMissingError:
        return None


def explain(view: TraceView, rows: Rows | None) -> TraceView:
    """Return a trace with the stage that took the extra time, a plain sentence why, and the slug of the failure.

    Args:
        view: The trace.
        rows: Requests around it; None when there are none to compare with.
    """
    # What another exporter's judge may have said is not known to be true here.
    view = replace(view, cause="", usual=False)
    own = _own_times(view)
    usual = _usual(view, rows)
    extra = {place: seconds - (usual.stages.get(place, 0.0) if usual else 0.0) for place, seconds in own.items()}
    slow_stage = max(extra, key=lambda place: extra[place], default=OUTSIDE_STAGES)
    if view.status == "unfinished":
        return _unfinished(view, rows)
    if usual and view.duration_s <= max(SLOW_FACTOR * usual.total, usual.total + SLOW_EXTRA_SECONDS):
        text = f"usual: {_s(view.duration_s)} where {view.input_bucket} inputs take {_s(usual.total)}"
        return replace(view, slow_stage=slow_stage, why=_ended(view, text), usual=True)
    lost = view.duration_s - (usual.total if usual else 0.0)
    if blocked := _blocked(view, rows, lost):
        return replace(view, slow_stage=slow_stage, why=_ended(view, blocked), cause=BLOCKED)
    reason = _queued(view, slow_stage, lost) or _slow_place(slow_stage, own, usual, view)
    return replace(view, slow_stage=slow_stage, why=_ended(view, reason + _long_ago(view, rows)))


def _own_times(view: TraceView) -> dict[str, float]:
    """Return each stage's seconds without its children's, and those outside of all stages."""
    if not view.spans:
        return {}
    root, *stages = view.spans
    own = {OUTSIDE_STAGES: root.duration_s - _covered(stages, root.name)}
    for span in stages:
        own[span.name] = span.duration_s - _covered(stages, span.name)
    return {place: max(seconds, 0.0) for place, seconds in own.items()}


def _covered(stages: Sequence[SpanView], parent: str) -> float:
    """Return the seconds that the children of a span cover; they may run at the same time."""
    total, reached = 0.0, float("-inf")
    for span in sorted((one for one in stages if one.parent == parent), key=lambda one: one.start_s):
        end = span.start_s + span.duration_s
        total += max(0.0, end - max(span.start_s, reached))
        reached = max(reached, end)
    return total


def _usual(view: TraceView, rows: Rows | None) -> _Usual | None:
    if rows is None:
        return None
    same = (rows.bucket == view.input_bucket) & rows.answered()
    if same.sum() < LEAST_NORMAL_ROWS:
        same = rows.answered()
    if same.sum() < LEAST_NORMAL_ROWS:
        return None
    # Medians over all of them: slow ones are a minority, or there is no "usual" to speak of.
    stages = {place: _median(seconds[same]) for place, seconds in rows.self_times().items()}
    return _Usual(_median(rows.duration_s[same]), stages)


def _median(values: npt.NDArray[np.float64]) -> float:
    """Return the median of some values, NaN if one is; numpy's own loads its masked arrays, 30 ms of a command."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    return float((ordered[middle] + ordered[~middle]) / 2 if ordered[-1] == ordered[-1] else np.nan)


def _blocked(view: TraceView, rows: Rows | None, lost: float) -> str:
    """Return the sentence about a blocked event loop, if blocked times cover half of the extra time."""
    episodes = _episodes(view, rows)
    start, end = view.start_unix_ns / 1e9, view.start_unix_ns / 1e9 + view.duration_s
    overlaps = [(min(end, one.start_s + one.duration_s) - max(start, one.start_s), one) for one in episodes]
    seconds = sum(overlap for overlap, _ in overlaps)
    if not overlaps or seconds < LEAST_SHARE * lost:
        return ""
    _, worst = max(overlaps, key=lambda pair: pair[0])
    by = f" by {worst.place}" if worst.stack else "; what blocked it left no stack"
    return f"the event loop was blocked for {_s(seconds)} of it{by}"


def _episodes(view: TraceView, rows: Rows | None) -> list[Episode]:
    start, end = view.start_unix_ns / 1e9, view.start_unix_ns / 1e9 + view.duration_s
    rings = [ring for ring in (rows.rings if rows else ()) if ring.ring == view.ring]
    return [
        one for ring in rings for one in ring.episodes if one.start_s < end and one.start_s + one.duration_s > start
    ]


def _long_ago(view: TraceView, rows: Rows | None) -> str:
    """Return what is known of blocked times around a trace when the list of single ones does not reach back to it.

    The sums cannot prove that this request met one of them, so they stand beside the stage and are no cause.
    """
    end = view.start_unix_ns / 1e9 + view.duration_s
    for ring in rows.rings if rows else ():
        if ring.ring != view.ring or not ring.episodes or min(one.start_s for one in ring.episodes) <= end:
            continue
        for one in ring.blockers:
            if one.first_s <= end and one.last_s >= view.start_unix_ns / 1e9:
                by = f", by {one.sample.place}" if one.sample.stack else ""
                times = f"{one.count} times, {_s(one.seconds)} in all, from {iso(one.first_s)} to {iso(one.last_s)}"
                return f"; single blocked times of then are no longer kept, but the loop was blocked {times}{by}"
    return ""


def _queued(view: TraceView, slow_stage: str, lost: float) -> str:
    """Return the sentence about waiting in a queue, if a stage says that it waited half of the extra time."""
    for span in view.spans:
        waited = span.attributes.get("queue_wait_ns")
        if span.name == slow_stage and isinstance(waited, int) and waited / 1e9 >= LEAST_SHARE * lost:
            return f"it waited {_s(waited / 1e9)} in the queue of {span.name}"
    return ""


def _slow_place(place: str, own: dict[str, float], usual: _Usual | None, view: TraceView) -> str:
    seconds = own.get(place, view.duration_s)
    where = "outside of all stages (middleware, routing, waiting)" if place == OUTSIDE_STAGES else f"in {place}"
    if usual is None:
        return f"{_s(seconds)} {where}; too few other requests to say what is usual"
    normal = usual.stages.get(place, 0.0)
    times = f", {seconds / normal:.0f} times" if normal > 1e-6 else ", against"
    return f"{_s(seconds)} {where}{times} the usual {_s(normal)} of {view.input_bucket} inputs"


def _unfinished(view: TraceView, rows: Rows | None) -> TraceView:
    slow_stage = view.last_stage or OUTSIDE_STAGES
    where = f"in {view.last_stage}" if view.last_stage else "before its first stage"
    if view.outcome != "in_flight":
        why = f"it never ended: its worker is gone; it was {where}"
        # A view of an exporter elsewhere may bear outcomes that we do not know.
        return replace(view, slow_stage=slow_stage, why=why, cause=WORKER_GONE if view.outcome == "never_ended" else "")
    blocked = _episodes(view, rows)
    by = f"; the event loop was blocked meanwhile by {blocked[-1].place}" if blocked and blocked[-1].stack else ""
    why = f"it has not ended yet; it is {where}{by}"
    return replace(view, slow_stage=slow_stage, why=why, cause=BLOCKED if by else "")


def _ended(view: TraceView, reason: str) -> str:
    """Put how the request ended before the reason of its duration, when it did not simply succeed."""
    if view.outcome in ("ok", ""):
        return reason
    attributes = view.spans[0].attributes if view.spans else {}
    told = attributes.get("reason") or attributes.get("error.type") or ""
    return f"{view.outcome}{f' ({told})' if told else ''}; {reason}"


def _s(seconds: float) -> str:
    """Return seconds with three digits that count."""
    return f"{seconds:.3f} s" if seconds >= 0.1 else f"{seconds:.5f} s"
