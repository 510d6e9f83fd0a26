"""Do batches consist of padding, for whom, and what does it cost the others?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Floats, Mask, Rows

__all__ = ["culprit", "long_share", "others_model_time", "share", "wasted_seconds"]

MODEL = "model.forward"
_WIDTH, _PADDED = "sentiment.tokenizer/seq_len", "sentiment.tokenizer/padding_ratio"
# A text that fills less of its row than this was padded for somebody else.
MOSTLY = 0.5
# Fewer requests say nothing about batches.
LEAST_ROWS = 20
_QUERY = f"rows: {_WIDTH}, {_PADDED} and the time of {MODEL}, by batch_id"


@dataclass(frozen=True)
class _Slots:
    """Requests of the incident by what their rows of the tensor held.

    Attributes:
        width: Slots of each request's row of the tensor.
        used: Those that held its text.
        seconds: Time of the call to the model that it shared.
        batch: A number for each batch of each worker.
        at: Index into the rows of triage.
    """

    width: Floats
    used: Floats
    seconds: Floats
    batch: npt.NDArray[np.int64]
    at: npt.NDArray[np.intp]

    @property
    def padded(self) -> Mask:
        """Which were padded to more than twice their length."""
        return np.asarray(self.used < MOSTLY * self.width)


def _known(rows: Rows) -> bool:
    return {_WIDTH, _PADDED, "batch_id"} <= rows.numbers.keys() and MODEL in rows.stages


def _slots(rows: Rows, since: float, until: float) -> _Slots | None:
    """Return the slots of the requests of a time; None when too few tell."""
    if not _known(rows):
        return None
    width, ratio, seconds = rows.numbers[_WIDTH], rows.numbers[_PADDED], rows.stages[MODEL][1]
    told = rows.between(since, until) & (width > 0) & ~np.isnan(ratio) & ~np.isnan(seconds)
    if told.sum() < LEAST_ROWS:
        return None
    # Each worker counts its own batches.
    worker = np.unique(rows.ring[told].astype(str), return_inverse=True)[1].astype(np.int64)
    batch = worker * 2**40 + rows.numbers["batch_id"][told].astype(np.int64)
    width = width[told]
    return _Slots(width, width * (1.0 - ratio[told]), seconds[told], batch, np.flatnonzero(told))


def _now(evidence: Evidence) -> _Slots | None:
    return None if evidence.rows is None else _slots(evidence.rows, *evidence.window.incident)


def _result(step: str, value: float | str | None, detail: str, source: str = "ring", query: str = _QUERY) -> StepResult:
    return StepResult(f"padding.{step}", value, source, query, detail)


def share(evidence: Evidence) -> StepResult:
    """Return the share of the tensors' slots that held padding."""
    found = _now(evidence)
    if found is not None:
        value = 1.0 - float(found.used.sum() / found.width.sum())
        return _result("share", value, f"{value:.0%} of {found.width.sum():.0f} slots of {len(found.at)} requests")
    series = evidence.get(signals.SLOTS)
    if evidence.rows is not None or series is None:
        return _result("share", None, "too few requests tell how they were padded")
    since, until = evidence.window.incident
    grown = {
        use: signals.increase([one for one in series if one.labels.get("use") == use], since, until)
        for use in ("padding", "text")
    }
    total, query = sum(grown.values()), f"sum by (use) (increase({signals.SLOTS}[1m]))"
    if not total:
        return _result("share", None, "no slots were counted", "prometheus", query)
    value = grown["padding"] / total
    return _result("share", value, f"{value:.0%} of {total:.0f} slots", "prometheus", query)


def wasted_seconds(evidence: Evidence) -> StepResult:
    """Return the model's time per request that went into padding."""
    found = _now(evidence)
    if found is None:
        return _result("wasted_seconds", None, "too few requests tell how they were padded")
    value = float((found.seconds * (1.0 - found.used / found.width)).mean())
    return _result("wasted_seconds", value, f"{value * 1e3:.1f} ms of {found.seconds.mean() * 1e3:.1f} ms in the model")


def long_share(evidence: Evidence) -> StepResult:
    """Return the share of requests in padded batches that are the reason: they fill half of the width or more."""
    found = _now(evidence)
    if found is None:
        return _result("long_share", None, "too few requests tell how they were padded")
    mates = _in_padded_batches(found)
    if not mates.any():
        return _result("long_share", 1.0, "no batch was padded to more than twice the length of its texts")
    value = 1.0 - float(found.padded[mates].sum() / mates.sum())
    return _result("long_share", value, f"{value:.0%} of the requests in padded batches are long themselves")


def _in_padded_batches(found: _Slots) -> Mask:
    return np.isin(found.batch, found.batch[found.padded])


def others_model_time(evidence: Evidence) -> StepResult:
    """Return the model's time for requests that were padded for somebody, over that of requests like them before.

    Requests of up to their number of tokens, in the healthy time; without one, those now that were not padded.
    """
    found, rows, step = _now(evidence), evidence.rows, "others_model_time"
    if found is None or rows is None or found.padded.sum() < LEAST_ROWS:
        return _result(step, None, "too few requests were padded to more than twice their length")
    now = float(np.median(found.seconds[found.padded]))
    longest = float(np.quantile(found.used[found.padded], 0.95))
    before, when = _slots(rows, *evidence.window.baseline), "before"
    if before is None:
        before, when = found, "of others now"
    alike = ~before.padded & (before.used <= longest)
    if alike.sum() < LEAST_ROWS // 2:
        return _result(step, None, f"padded ones take {now * 1e3:.1f} ms; too few like them were not padded")
    usual = float(np.median(before.seconds[alike]))
    value = now / max(usual, 1e-9)
    return _result(step, value, f"texts of up to {longest:.0f} tokens: {usual * 1e3:.1f} ms {when}, {now * 1e3:.1f} ms")


def culprit(evidence: Evidence) -> StepResult:
    """Return the request whose length cost the others of its batch most, and how many are like it."""
    found, rows = _now(evidence), evidence.rows
    if found is None or rows is None or not found.padded.any():
        return _result("culprit", None, "no batch was padded to more than twice the length of its texts")
    mates = _in_padded_batches(found)
    guilty = mates & ~found.padded
    if not guilty.any():
        return _result("culprit", None, "the longest texts of the padded batches are not among the kept rows")
    lost: dict[int, float] = {}
    for key, gone in zip(found.batch.tolist(), ((found.width - found.used) * found.padded).tolist(), strict=True):
        lost[key] = lost.get(key, 0.0) + gone
    at = max(np.flatnonzero(guilty).tolist(), key=lambda number: (lost[int(found.batch[number])], found.used[number]))
    batch = found.batch == found.batch[at]
    others = float(np.median(found.used[batch & found.padded])) if (batch & found.padded).any() else 0.0
    trace = str(rows.trace_id[found.at[at]])
    detail = (
        f"request {trace} has {found.used[at]:.0f} tokens, the others of its {batch.sum()} about {others:.0f}; "
        f"{guilty.sum()} such requests in {len(set(found.batch[guilty].tolist()))} batches"
    )
    return _result("culprit", f"{trace} ({found.used[at]:.0f} tokens)", detail)
