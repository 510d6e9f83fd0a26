"""What runs in front of the model: does it hold up one kind of agent alone, and does it compute or wait?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Floats, Mask, Objects, Rows
from runbooks.steps import event_loop

__all__ = ["busy_share", "computing_share", "in_preprocess", "one_kind_of_agent", "others_held_up", "time_ratio"]

BODY, FILTERS, HAND_OVER = "network.receive", "sentiment.preprocess", "scheduler.dispatch"
# Filters and cleaning take well under a millisecond; what a busy machine adds now and then stays below these.
HELD_UP_FACTOR = 5.0
HELD_UP_SECONDS = 0.01
# The bound of the histogram that comes next (exporters/buckets.py).
HELD_UP_BOUND = 0.02
# Five of five from one of three kinds are chance once in eighty; a rule that takes seconds leaves time for no more.
LEAST_HELD_UP = 5
# Among agents of (nearly) one kind a share says nothing about kinds.
MOST_OF_TRAFFIC = 0.8
# Below this share of time the process's CPU wobbles more than the filters add.
LEAST_BUSY = 0.02
_QUERY = f"rows: start to {HAND_OVER}, less {BODY}, by device_type and agent_family"


@dataclass(frozen=True)
class _Kind:
    """The kind of agent that the filters cost most, and the others.

    Attributes:
        name: For people.
        held, others_held: Requests that were held up in front of the model: its own, all others'.
        total, others: Requests.
        excess_s: Seconds that all held-up requests took over the usual.
        source, query: Where from.
    """

    name: str
    held: float
    others_held: float
    total: float
    others: float
    excess_s: float
    source: str
    query: str


def filter_seconds(rows: Rows) -> Floats | None:
    """Return each request's time in front of the model, in middleware or the stage for it; None without such stages.

    The wait for the body is left out. What was refused before the hand-over counts with its stage alone.
    """
    if HAND_OVER not in rows.stages or FILTERS not in rows.stages:
        return None
    body = np.nan_to_num(rows.stages[BODY][1]) if BODY in rows.stages else 0.0
    before = rows.stages[HAND_OVER][0] - body
    return np.asarray(np.where(np.isnan(before), np.nan_to_num(rows.stages[FILTERS][1]), np.maximum(before, 0.0)))


def _held_up(evidence: Evidence, rows: Rows) -> tuple[Floats, Mask, float] | None:
    """Return time in front of the model, which requests of the incident were held up there, and the usual time."""
    seconds = filter_seconds(rows)
    if seconds is None or not len(rows):
        return None
    healthy = seconds[rows.between(*evidence.window.baseline)]
    usual = float(np.median(healthy)) if len(healthy) >= LEAST_HELD_UP else float(np.quantile(seconds, 0.25))
    held = rows.between(*evidence.window.incident) & (seconds > max(HELD_UP_FACTOR * usual, usual + HELD_UP_SECONDS))
    return seconds, np.asarray(held), usual


def _kinds(rows: Rows) -> Objects:
    names = [rows.labels[name] for name in ("device_type", "agent_family") if name in rows.labels]
    kinds = np.empty(len(rows), dtype=object)
    kinds[:] = [" ".join(one or "(absent)" for one in values) for values in zip(*names, strict=True)] if names else ""
    return kinds


def _suspect(evidence: Evidence) -> _Kind | None:
    rows = evidence.rows
    found = None if rows is None else _held_up(evidence, rows)
    if rows is None or found is None:
        return _suspect_of_series(evidence) if rows is None else None
    seconds, held, usual = found
    inside, kinds = rows.between(*evidence.window.incident), _kinds(rows)
    excess = np.where(held, seconds - usual, 0.0)
    by_kind = {kind: float(excess[kinds == kind].sum()) for kind in set(kinds[inside].tolist())}
    if not by_kind:
        return None
    name = max(by_kind, key=lambda kind: by_kind[kind])
    mine = kinds == name
    return _Kind(
        name,
        float((held & mine).sum()),
        float((held & ~mine).sum()),
        float((inside & mine).sum()),
        float((inside & ~mine).sum()),
        sum(by_kind.values()),
        "ring",
        _QUERY,
    )


def _suspect_of_series(evidence: Evidence) -> _Kind | None:
    """Return the same from the histogram by family of agents; devices are not told apart there."""
    buckets, sums = evidence.get(signals.FILTER_BUCKET), evidence.get(signals.FILTER_SUM)
    if not buckets or not sums:
        return None
    since, until = evidence.window.incident
    by: dict[str, tuple[float, float, float]] = {}
    for family in {one.labels.get("agent_family", "") for one in buckets}:
        counts = signals.histogram(
            [one for one in buckets if one.labels.get("agent_family", "") == family], since, until
        )
        held = sum(count for bound, count in counts.items() if bound > HELD_UP_BOUND)
        spent = signals.increase([one for one in sums if one.labels.get("agent_family", "") == family], since, until)
        by[family] = (held, sum(counts.values()), spent if held else 0.0)
    name = max(by, key=lambda family: by[family][2])
    held, total, _ = by[name]
    return _Kind(
        name or "(absent)",
        held,
        sum(one[0] for one in by.values()) - held,
        total,
        sum(one[1] for one in by.values()) - total,
        sum(one[2] for one in by.values()),
        "prometheus",
        f"sum by (agent_family, le) (increase({signals.FILTER_BUCKET}[1m]))",
    )


def _result(step: str, kind: _Kind | None, value: float | None, detail: str) -> StepResult:
    source, query = (kind.source, kind.query) if kind else ("ring", _QUERY)
    return StepResult(f"filters.{step}", value, source, query, detail)


def busy_share(evidence: Evidence) -> StepResult:
    """Return the seconds beyond the usual that requests spent in front of the model, per second of the incident."""
    kind = _suspect(evidence)
    if kind is None:
        return _result("busy_share", None, None, "no stages in front of the model are known")
    since, until = evidence.window.incident
    value = kind.excess_s / max(until - since, 1.0)
    return _result("busy_share", kind, value, f"{kind.excess_s:.1f} s beyond the usual in {until - since:.0f} s")


def one_kind_of_agent(evidence: Evidence) -> StepResult:
    """Return how far the held-up requests come from one kind of agent: 1 all of them, 0 as many as of all requests.

    A handful of them, or one kind that is nearly all the traffic, is 0 and not unseen: nothing stands out.
    """
    kind, step = _suspect(evidence), "one_kind_of_agent"
    if kind is None:
        return _result(step, kind, None, "no stages in front of the model are known")
    if kind.held + kind.others_held < LEAST_HELD_UP:
        return _result(step, kind, 0.0, f"fewer than {LEAST_HELD_UP} requests were held up in front of the model")
    usual = kind.total / max(kind.total + kind.others, 1.0)
    if usual > MOST_OF_TRAFFIC:
        text = f"{kind.name or 'one kind'} is {usual:.0%} of the traffic: no other kind to stand out against"
        return _result(step, kind, 0.0, text)
    share = kind.held / (kind.held + kind.others_held)
    detail = f"{share:.0%} of those held up are {kind.name}, which sends {usual:.0%} of the requests"
    return _result(step, kind, (share - usual) / (1.0 - usual), detail)


def others_held_up(evidence: Evidence) -> StepResult:
    """Return the share of all other kinds' requests that were held up in front of the model."""
    kind = _suspect(evidence)
    if kind is None or not kind.others:
        return _result("others_held_up", kind, None, "no other kind of agent to compare with")
    value = kind.others_held / kind.others
    return _result("others_held_up", kind, value, f"{kind.others_held:.0f} of {kind.others:.0f} requests of others")


def computing_share(evidence: Evidence) -> StepResult:
    """Return how much of that extra time is CPU time: a filter that waits for somebody burns none.

    The stage's own CPU time tells when the time lies in the stage; for middleware around it the process's does. What
    the loop's thread waited for a CPU of a busy machine is no time of the stage: it would have computed.
    """
    kind, rows, step = _suspect(evidence), evidence.rows, "computing_share"
    found = None if rows is None else _held_up(evidence, rows)
    if rows is not None and found is not None and FILTERS in rows.cpu_s:
        seconds, held, _ = found
        spent, inside = float(seconds[held].sum()), float(np.nan_to_num(rows.stages[FILTERS][1][held]).sum())
        if spent and inside > 0.5 * spent:
            cpu = float(np.nan_to_num(rows.cpu_s[FILTERS][held]).sum())
            waited = min(event_loop.waited_for_cpu(evidence)[1], inside)
            text = f"{cpu:.1f} s of CPU in {inside:.1f} s of the stage, {waited:.1f} s of them waiting for a CPU"
            value = cpu / max(inside - waited, cpu) if cpu else 0.0
            return StepResult(f"filters.{step}", value, "ring", f"rows: {FILTERS}/cpu_ns", text)
    return _process_computing(evidence, kind, step)


def _process_computing(evidence: Evidence, kind: _Kind | None, step: str) -> StepResult:
    cpu, query = evidence.get(signals.CPU), f"rate({signals.CPU}[1m])"
    since, until = evidence.window.incident
    begin, end = evidence.window.baseline
    if cpu is None or kind is None or kind.excess_s < LEAST_BUSY * (until - since):
        return StepResult(f"filters.{step}", None, "prometheus", query, "too little to tell it from the usual CPU time")
    if end - begin < 20.0:
        # Without a healthy time there is an upper bound: all that the process computed, whatever for.
        most = signals.increase(cpu, since, until)
        if most >= kind.excess_s:
            return StepResult(f"filters.{step}", None, "prometheus", query, "no healthy time to compare with")
        text = f"at most {most:.1f} s of CPU for {kind.excess_s:.1f} s more in front of the model"
        return StepResult(f"filters.{step}", most / kind.excess_s, "prometheus", query, text)
    before = signals.increase(cpu, begin, end) / (end - begin)
    more = signals.increase(cpu, since, until) - before * (until - since)
    text = f"{more:.1f} s of CPU more than usual for {kind.excess_s:.1f} s more in front of the model"
    return StepResult(f"filters.{step}", max(more, 0.0) / kind.excess_s, "prometheus", query, text)


def time_ratio(evidence: Evidence) -> StepResult:
    """Return the mean time in front of the model of that kind of agent, now over before."""
    kind, rows = _suspect(evidence), evidence.rows
    seconds = None if rows is None else filter_seconds(rows)
    if kind is None or rows is None or seconds is None:
        return _result("time_ratio", kind, None, "no rows to compare")
    mine = _kinds(rows) == kind.name
    now, before = (seconds[mine & rows.between(*span)] for span in (evidence.window.incident, evidence.window.baseline))
    if len(now) < LEAST_HELD_UP or len(before) < LEAST_HELD_UP or not before.mean():
        return _result("time_ratio", kind, None, "too few requests of that kind to compare")
    detail = f"{kind.name}: {before.mean() * 1e3:.2f} ms before, {now.mean() * 1e3:.2f} ms now"
    return _result("time_ratio", kind, float(now.mean() / before.mean()), detail)


def in_preprocess(evidence: Evidence) -> StepResult:
    """Return the share of the held-up requests' time in front of the model that lies in the stage of the filters."""
    rows = evidence.rows
    found = None if rows is None else _held_up(evidence, rows)
    if rows is None or found is None or not found[1].any():
        return StepResult("filters.in_preprocess", None, "ring", _QUERY, "no request was held up there")
    seconds, held, _ = found
    value = float(np.nan_to_num(rows.stages[FILTERS][1][held]).sum() / seconds[held].sum())
    return StepResult("filters.in_preprocess", value, "ring", _QUERY, f"{value:.0%} of it in {FILTERS}")
