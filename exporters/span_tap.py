"""Between the rows and the sender: chooses requests, encodes their spans, and marks those that may become exemplars."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exporters.batch_mates import BatchMates
from exporters.keep import KeepBudget, KeepRules, keep_reasons
from exporters.labels import KEPT_REASONS
from exporters.names import OUTCOMES, input_bucket
from exporters.otlp import SpanWriter, open_span, resource_bytes
from exporters.row_plan import RowPlan
from exporters.rows import OpenRequest
from exporters.sender import Parcel, Sender
from exporters.totals import Totals
from probes.reader import Header

__all__ = ["Mark", "SpanTap", "resource_attributes"]

_log = logging.getLogger(__name__)
_ANSWERED = (OUTCOMES.index("ok"), OUTCOMES.index("degraded"))
# Plans of ring files whose worker is gone are of no more use; live ones are made anew in a millisecond.
_MOST_WRITERS = 256


@dataclass(frozen=True, slots=True)
class Mark:
    """An answered request whose spans were queued: an exemplar once they are delivered.

    Attributes:
        bucket: Length class, the label of the latency histogram.
        seconds: Its duration.
        trace_id: 32 hex digits.
        unix_seconds: When it ended.
    """

    bucket: str
    seconds: float
    trace_id: str
    unix_seconds: float


class SpanTap:
    """Hands the spans of requests worth keeping to a sender."""

    def __init__(self, sender: Sender, rules: KeepRules, version: str, budget: KeepBudget | None = None) -> None:
        self._sender = sender
        self._rules = rules
        self._budget = budget or KeepBudget(0.0)
        self._shedding = False
        self._mates = BatchMates()
        self._version = version
        self._writers: dict[tuple[str, int], tuple[bytes, SpanWriter, RowPlan]] = {}

    def offer(self, header: Header, rows: npt.NDArray[Any], strings: Sequence[str]) -> Totals:
        """Queue the spans of those rows that the rules keep, and return how many were kept, by why."""
        counts = Totals()
        self._mates.learn(header.ring_id, rows)
        reasons = keep_reasons(rows, self._rules)
        over = self._budget.shed(reasons, rows["trace_lo"])
        self._count(counts, "telemetry_traces_shed_total", reasons[over])
        self._say(bool(over.any()))
        reasons[over] = -1
        kept = rows[reasons >= 0]
        if not len(kept):
            return counts
        self._count(counts, "telemetry_traces_kept_total", reasons[reasons >= 0])
        resource, writer, plan = self._writer(header, rows.dtype)
        batch, own = plan.place["batch_id"], plan.place["span_id"]
        for row in kept.tolist():
            body, spans = writer.encode(row, strings, self._mates.of(header.ring_id, row[batch], row[own]))
            self._sender.put(Parcel(resource, body, spans, _mark(plan, row)))
        return counts

    @staticmethod
    def _count(counts: Totals, name: str, reasons: npt.NDArray[np.int64]) -> None:
        """Count requests by the rule that chose them."""
        for index, count in enumerate(np.bincount(reasons).tolist()):
            if count:
                counts.add(name, (KEPT_REASONS[index],), count)

    def _say(self, shedding: bool) -> None:
        """Say once that the budget is spent, and once that it is enough again."""
        if shedding != self._shedding:
            told = "more requests are worth their spans than the budget; shedding" if shedding else "shedding no more"
            _log.warning("%s (telemetry_traces_shed_total)", told)
        self._shedding = shedding

    def offer_unfinished(self, header: Header, requests: Sequence[OpenRequest], ended_unix_ns: int) -> Totals:
        """Queue the requests that a dead worker never ended: all of them, for each is a fault."""
        counts = Totals()
        if not self._rules.unfinished:
            return counts
        resource = resource_bytes(resource_attributes(header, self._version))
        for request in requests:
            self._sender.put(Parcel(resource, open_span(request, ended_unix_ns), 1))
            counts.add("telemetry_traces_kept_total", ("unfinished",), 1)
        return counts

    def _writer(self, header: Header, dtype: np.dtype[Any]) -> tuple[bytes, SpanWriter, RowPlan]:
        """Return the resource and the encoder of a ring file in its present revision."""
        key = (header.ring_id, len(dtype.names or ()))
        found = self._writers.get(key)
        if found is None:
            if len(self._writers) >= _MOST_WRITERS:
                self._writers.clear()
            plan = RowPlan(dtype, header.stages)
            found = self._writers[key] = (
                resource_bytes(resource_attributes(header, self._version)),
                SpanWriter(plan),
                plan,
            )
        return found


def resource_attributes(header: Header, version: str) -> dict[str, str | bool | int | float]:
    """Return who made the spans, by OpenTelemetry's semantic conventions; unknown fingerprints are left out.

    Args:
        header: The worker's ring file.
        version: Version of this package.
    """
    attributes: dict[str, str | bool | int | float] = {
        "service.name": header.service,
        # One per worker's life: a pid comes again, and in a container it is always 1.
        "service.instance.id": header.ring_id,
        "service.version": header.build,
        "host.name": header.host,
        "process.pid": header.pid,
        "telemetry.sdk.name": "inferdeck",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": version,
        "inferdeck.worker": header.worker,
        "inferdeck.config": header.config,
        "inferdeck.model": header.model,
        "inferdeck.driver": header.driver,
    }
    return {key: value for key, value in attributes.items() if value != ""}


def _mark(plan: RowPlan, row: Sequence[Any]) -> Mark | None:
    """Return the mark of an answered request, None for others: they are not in the latency histogram."""
    place = plan.place
    if row[place["outcome"]] not in _ANSWERED:
        return None
    duration = row[place["duration_ns"]]
    return Mark(
        bucket=input_bucket(row[place["input_length"]]),
        seconds=duration / 1e9,
        trace_id=f"{row[place['trace_hi']]:016x}{row[place['trace_lo']]:016x}",
        unix_seconds=(row[place["start_unix_ns"]] + duration) / 1e9,
    )
