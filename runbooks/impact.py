"""Impact first: how many requests and sessions, how they ended, since when, still going, and the P95 now and before."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np

from exporters.names import INPUT_BUCKETS
from runbooks import signals
from runbooks.evidence import Evidence
from runbooks.rows import OUTCOMES, Mask, OpenRequest, Rows

__all__ = ["bad_rows", "iso", "lost_requests", "measure_impact", "unknown_impact", "worst_traces"]

# From so many usual distances between requests without one, and at least these seconds, they are said to have stopped.
STOPPED_DISTANCES = 20.0
STOPPED_SECONDS = 10.0
FAILED = tuple(OUTCOMES.index(name) for name in ("error", "degraded", "disconnected"))


def iso(seconds: float | None) -> str | None:
    """Return unix seconds as an RFC 3339 time in UTC with milliseconds; None stays None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bad_rows(evidence: Evidence, rows: Rows) -> Mask:
    """Return which rows of the incident failed, were degraded or given up, or were slow for their length class."""
    bad = evidence.slow() | np.isin(rows.outcome, FAILED)
    return np.asarray(bad & rows.between(*evidence.window.incident))


def lost_requests(evidence: Evidence, rows: Rows) -> list[OpenRequest]:
    """Return the requests that never ended because their worker fell silent within the incident or just before it."""
    since, until = evidence.window.incident
    silent = {ring.ring for ring in rows.rings if since - 60.0 <= ring.last_sign_s < until - 5.0}
    return [one for one in rows.open if one.ring in silent and since - 60.0 <= one.start_s <= until]


def unknown_impact(since: float | None, until: float, still_going: bool | None) -> dict[str, Any]:
    """Return an impact of which nothing was measured.

    All keys are there whatever is missing: a reader tells "unknown" from "none" by None against 0.

    Args:
        since: Its onset, unix seconds; None when there is none to be seen.
        until: Its end, or the end of what was looked at, unix seconds.
        still_going: Whether it goes on; None when nothing is dated.
    """
    measured = ("requests", "bad_requests", "unfinished_requests", "sessions", "bad_sessions")
    shares = ("by_outcome", "p95_seconds", "rate_per_second", "stopped_since")
    dated: dict[str, Any] = {"since": iso(since), "until": iso(until), "still_going": still_going}
    return dated | dict.fromkeys(measured + shares)


def measure_impact(evidence: Evidence) -> dict[str, Any]:
    """Return the impact of the incident; figures that no source can give are None."""
    window = evidence.window
    still_going = window.going_on if window.onset is not None else None
    result = unknown_impact(window.onset, window.incident[1], still_going)
    return result | (_from_rows(evidence, evidence.rows) if evidence.rows is not None else _from_series(evidence))


def _from_rows(evidence: Evidence, rows: Rows) -> dict[str, Any]:
    now, before = rows.between(*evidence.window.incident), rows.between(*evidence.window.baseline)
    bad, lost = bad_rows(evidence, rows), lost_requests(evidence, rows)
    # A newer writer may know outcomes that we do not.
    outcomes = Counter(OUTCOMES[code] if code < len(OUTCOMES) else "other" for code in rows.outcome[now].tolist())
    return {
        "requests": int(now.sum()),
        "bad_requests": int(bad.sum()) + len(lost),
        "slow_requests": int((evidence.slow() & now).sum()),
        "unfinished_requests": len(lost),
        "sessions": len(set(rows.session[now].tolist())),
        "bad_sessions": len(set(rows.session[bad].tolist()) | {one.session_hash for one in lost}),
        "by_outcome": dict(sorted(outcomes.items())),
        "p95_seconds": {
            name: {"now": _p95(rows, now & mask), "before": _p95(rows, before & mask)}
            for name, mask in [("all", np.ones(len(rows), dtype=bool))]
            + [(bucket, rows.bucket == bucket) for bucket in INPUT_BUCKETS if (rows.bucket == bucket).any()]
        },
        "rate_per_second": {
            "now": _rate(int(now.sum()), evidence.window.incident),
            "before": _rate(int(before.sum()), evidence.window.baseline),
        },
        "stopped_since": iso(_stopped_since(evidence, rows)),
    }


def _stopped_since(evidence: Evidence, rows: Rows) -> float | None:
    """Return when the last request ended, unix seconds, if by the usual rate many more were due; else None."""
    window = evidence.window
    rate = _rate(int(rows.between(*window.baseline).sum()), window.baseline)
    ends = rows.end_s[rows.end_s < window.incident[1]]
    if not rate or window.onset is None or not len(ends):
        return None
    last = float(ends.max())
    return last if window.incident[1] - last >= max(STOPPED_SECONDS, STOPPED_DISTANCES / rate) else None


def _from_series(evidence: Evidence) -> dict[str, Any]:
    """Without rows the counters still give totals; sessions and slow requests cannot be counted."""
    requests, latency = evidence.get(signals.REQUESTS), evidence.get(signals.LATENCY_BUCKET)
    result: dict[str, Any] = {}
    if requests:
        by: dict[str, float] = {}
        for one in requests:
            outcome = one.labels.get("outcome", "other")
            by[outcome] = by.get(outcome, 0.0) + signals.increase([one], *evidence.window.incident)
        total = sum(by.values())
        result["requests"] = round(total)
        result["by_outcome"] = {name: round(count) for name, count in sorted(by.items())}
        result["bad_requests"] = round(sum(by.get(OUTCOMES[code], 0.0) for code in FAILED))
        result["rate_per_second"] = {
            "now": _rate(total, evidence.window.incident),
            "before": _rate(signals.increase(requests, *evidence.window.baseline), evidence.window.baseline),
        }
    if latency:
        result["p95_seconds"] = {
            "all": {
                "now": signals.quantile(signals.histogram(latency, *evidence.window.incident), 0.95),
                "before": signals.quantile(signals.histogram(latency, *evidence.window.baseline), 0.95),
            }
        }
    return result


def worst_traces(evidence: Evidence, count: int = 5) -> list[str]:
    """Return trace ids of the worst requests: unfinished ones first, then failed, then the slowest."""
    rows = evidence.rows
    if rows is None:
        return []
    # What never ended tells most about a death, a failure more than mere slowness.
    lost = [one.trace_id for one in lost_requests(evidence, rows)][:count]
    bad = np.nonzero(bad_rows(evidence, rows))[0]
    failed = np.isin(rows.outcome[bad], FAILED)
    order = bad[np.lexsort((-rows.duration_s[bad], ~failed))]
    return list(dict.fromkeys(lost + rows.trace_id[order[:count]].tolist()))[:count]


def _p95(rows: Rows, mask: Mask) -> float | None:
    durations = rows.duration_s[mask & rows.answered()]
    return float(np.quantile(durations, 0.95)) if len(durations) else None


def _rate(count: float, span: tuple[float, float]) -> float | None:
    seconds = span[1] - span[0]
    return count / seconds if seconds >= 1.0 else None
