"""When it began: the stretch of time in which a signal left its usual level, found over all decisive signals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from runbooks import signals
from runbooks.disk_room import room_left
from runbooks.evidence import Evidence, Series, Window
from runbooks.gpu_queries import gpu_levels
from runbooks.lives import STARTING, died, lived_through, stuck
from runbooks.memory_queries import DUPLICATE_SESSIONS, MEMORY_SHORT
from runbooks.preprocess_queries import PREPROCESS_MISMATCH
from runbooks.rows import OUTCOMES, Floats, Rows
from runbooks.stream_queries import stream_levels
from runbooks.targets import down_at
from runbooks.token_queries import token_levels
from runbooks.without_rows import failed_share_over

__all__ = ["Signal", "find_window", "first_known", "watched"]

BIN_SECONDS = 5.0
# A stretch counts when it outweighs this many bins that lie just at twice the smallest effect.
LEAST_WEIGHT = 3.0
# Beyond four times the smallest effect a bin weighs no more: one wild bin must not make an incident.
MOST_EFFECTS = 4.0
# So many quiet bins (half a minute) end a stretch: what follows is another incident.
QUIET_BINS = 6.0
# Three in a hundred requests.
LEAST_SHARE = 0.03
# A share of few requests wobbles by chance: two standard deviations of it are no effect.
CHANCE_DEVIATIONS = 2.0
# An incident that ended longer ago than this is history, not what is asked about.
RECENT_SECONDS = 60.0
# What is never refused while all is well: a label of a bounded set, a file descriptor while there is room. One in two
# seconds, and one look in five.
REFUSALS = (
    (signals.LABELS_REFUSED, "refused labels a second", 0.5),
    (signals.DESCRIPTORS_REFUSED, "looks without a file descriptor, a second", 0.2),
)
# A worker's death counts as an incident for so long.
DEATH_SECONDS = 60.0


@dataclass(frozen=True)
class Signal:
    """One measure of badness over time.

    Attributes:
        name: For people.
        edges: Borders of the bins, unix seconds, shape (n + 1,).
        values: Badness per bin, NaN where nothing is known, shape (n,).
        effect: Smallest change that matters, in the signal's unit.
        source: prometheus or ring.
    """

    name: str
    edges: Floats
    values: Floats
    effect: float
    source: str = "prometheus"


def find_window(evidence: Evidence) -> Window:
    """Return the window with its onset and end, from the signal that stands out most.

    The usual level is the 20th percentile of the looked-at time, so up to four fifths of it may be the incident. A
    signal that was bad all along has no onset: absolute expectations then still judge the last minute.
    """
    window = evidence.window
    best: tuple[float, float, float, str] | None = None
    for signal in watched(evidence):
        found = _stretch(signal, window.until)
        if found and (best is None or found[0] > best[0]):
            best = (*found, signal.name)
    if best is None:
        return window
    _, onset, ended, name = best
    return replace(window, onset=_refined(evidence, onset), ended=min(ended, window.until), signal=name)


def first_known(evidence: Evidence) -> float:
    """Return the first time (unix seconds) of which any source knows something; the window's start when none does."""
    firsts = [float(one.times[0]) for one in evidence.get(signals.UP) or () if len(one.times)]
    if evidence.rows is not None:
        firsts += [ring.started_s for ring in evidence.rows.rings if ring.last_sign_s >= evidence.window.since]
    return min((max(one, evidence.window.since) for one in firsts), default=evidence.window.since)


def watched(evidence: Evidence) -> Iterator[Signal]:
    """Yield the decisive signals that the sources can give."""
    window = evidence.window
    edges = np.arange(window.since, window.until + BIN_SECONDS, BIN_SECONDS)
    edges[-1] = max(window.until, edges[-2] + 0.1) if len(edges) > 1 else window.until
    if len(edges) < 3:
        return
    up = evidence.get(signals.UP)
    if up:
        for job in (signals.SERVICE_JOB, signals.EXPORTER_JOB):
            yield Signal(f"target {job} down", edges, _down(up, job, edges), 0.5)
    blocked = evidence.get(signals.BLOCKED)
    if blocked:
        yield Signal("event loop blocked share", edges, _rate(blocked, edges), 0.03)
    times, lead = signals.heartbeat_lead(evidence.get(signals.HEARTBEAT) or ())
    if len(times):
        # The status page is a second old when it is scraped; three are no tick for certain.
        yield Signal("loop tick age", edges, _highest([Series({}, times, lead)], edges), 3.0)
    yield from _refusals(evidence, edges)
    waiting = evidence.get(signals.SPANS_WAITING)
    if waiting:
        # The exporter waits 10 s for one answer: a slow target takes less, one that is gone takes for ever.
        yield Signal("oldest span waits", edges, _highest(waiting, edges), 10.0)
    starting = [one for one in evidence.get(signals.PHASE) or () if one.labels.get("phase") in STARTING]
    if starting:
        yield Signal("service starting", edges, _highest(starting, edges), 0.5)
    yield from _disk_signals(evidence, edges)
    yield from _device_signals(evidence, edges)
    latency = evidence.get(signals.LATENCY_BUCKET)
    if latency and evidence.rows is None:
        yield _share_signal("slow share (histogram)", edges, *_slow_histogram(latency, edges), "prometheus")
    requests = evidence.get(signals.REQUESTS)
    if requests and evidence.rows is None:
        yield _share_signal("failed share (counter)", edges, *failed_share_over(requests, edges), "prometheus")
    if evidence.rows is not None:
        yield from _row_signals(evidence, evidence.rows, edges)


def _refusals(evidence: Evidence, edges: Floats) -> Iterator[Signal]:
    for query, name, effect in REFUSALS:
        if counted := evidence.get(query):
            yield Signal(name, edges, _rate(counted, edges), effect)


def _disk_signals(evidence: Evidence, edges: Floats) -> Iterator[Signal]:
    for query in (signals.STATE_ERRORS, signals.UNRECORDED):
        refused = tuple(one for one in evidence.get(query) or () if one.labels.get("reason") == "disk_full")
        if refused:
            # One in five seconds: healthy disks refuse none.
            yield Signal(f"{query} for a full disk, a second", edges, _rate(refused, edges), 0.2)
    for folder, times, left in room_left(evidence):
        none_left = Series({}, times, (left < 1.0).astype(np.float64))
        yield Signal(f"no room for {folder}", edges, _highest([none_left], edges), 0.5)


def _device_signals(evidence: Evidence, edges: Floats) -> Iterator[Signal]:
    twice = evidence.get(DUPLICATE_SESSIONS)
    if twice:
        # A process that has a model never needs it a second time: one is far beyond what is usual.
        yield Signal("sessions beyond the first of a model", edges, _highest(twice, edges), 0.1)
    short = evidence.get(MEMORY_SHORT)
    if short:
        # One in five seconds: a device that was sized for its batches refuses none.
        yield Signal("requests without memory, a second", edges, _rate(short, edges), 0.2)
    mismatch = evidence.get(PREPROCESS_MISMATCH)
    if mismatch:
        # A state, told once a scrape: equal fingerprints never differ for a moment.
        yield Signal("texts prepared otherwise than in training", edges, _highest(mismatch, edges), 0.1)
    for name, level, effect in (*gpu_levels(evidence), *token_levels(evidence)):
        yield Signal(name, edges, _highest([level], edges), effect)
    for name, series, effect in stream_levels(evidence):
        yield Signal(name, edges, _highest(series, edges), effect)


def _row_signals(evidence: Evidence, rows: Rows, edges: Floats) -> Iterator[Signal]:
    bad = np.isin(rows.outcome, [OUTCOMES.index(name) for name in ("error", "degraded", "disconnected")])
    # Before the onset is known the whole time is the baseline: medians stand a minority of slow requests.
    slow = evidence.at(replace(evidence.window, onset=None, ended=None)).slow()
    ended, _ = np.histogram(rows.end_s, edges)
    reasons = rows.labels.get("reason")
    broken = np.zeros(len(rows), dtype=bool) if reasons is None else np.isin(reasons, signals.CONTRACT_REASONS)
    crowded = np.logical_or.reduce([np.zeros(len(rows), dtype=bool), *rows.refused_texts.values()])
    shares = {"slow share": slow, "failed share": bad, "contract refusals": broken, "refused labels": crowded}
    for name, mask in shares.items():
        count, _ = np.histogram(rows.end_s[mask], edges)
        share = np.full(len(count), np.nan)
        np.divide(count, ended, out=share, where=ended > 0)
        yield _share_signal(name, edges, share, ended, "ring")
    if rows.rings:
        # A status page comes every second; 2.5 s without one is silence.
        last = max(ring.last_sign_s for ring in rows.rings)
        yield Signal("no sign of life", edges, np.where(edges[:-1] > last + 2.5, 1.0, 0.0), 0.5, "ring")
        yield Signal("requests that stay", edges, _staying(rows, edges), 0.25, "ring")
        yield Signal("worker died", edges, _deaths(rows, window=evidence.window, edges=edges), 0.5, "ring")


def _share_signal(name: str, edges: Floats, share: Floats, ended: Floats, source: str) -> Signal:
    """Return the signal of a share, whose smallest effect is three in a hundred, or more where chance does more.

    Two kinds of requests, one of them slow, make the slow share of a healthy service wobble as a binomial does.
    """
    known = ~np.isnan(share)
    effect = LEAST_SHARE
    if known.any():
        usual, each = float(np.quantile(share[known], 0.2)), float(np.median(ended[known]))
        effect = max(effect, CHANCE_DEVIATIONS * float(np.sqrt(max(usual * (1.0 - usual), 0.0) / max(each, 1.0))))
    return Signal(name, edges, share, effect, source)


def _staying(rows: Rows, edges: Floats) -> Floats:
    """Return 1 from when the first of several requests began that stays, else 0: what never ends is in no row."""
    starts = sorted(one.start_s for one in stuck(rows, float(edges[-1])))
    return np.where(edges[1:] > starts[0], 1.0, 0.0) if len(starts) > 1 else np.zeros(len(edges) - 1)


def _deaths(rows: Rows, *, window: Window, edges: Floats) -> Floats:
    """Return 1 for the bins of the minute after a worker's death that others lived through, else 0.

    The death of one of several is over in a moment and rarely shows in what is served; the shipped rule, too, looks
    back for it.
    """
    values = np.zeros(len(edges) - 1)
    for ring in died(rows, window.since, window.until):
        if lived_through(rows, ring.last_sign_s):
            values[(edges[1:] > ring.last_sign_s) & (edges[:-1] < ring.last_sign_s + DEATH_SECONDS)] = 1.0
    return values


def _down(up: tuple[Series, ...], job: str, edges: Floats) -> Floats:
    times, down = down_at(up, job)
    return _highest([Series({}, times, down)], edges)


def _highest(series: Iterable[Series], edges: Floats) -> Floats:
    values = np.full(len(edges) - 1, np.nan)
    for one in series:
        place = np.searchsorted(edges, one.times, side="right") - 1
        for index, value in zip(place, one.values, strict=True):
            if 0 <= index < len(values):
                values[index] = np.fmax(values[index], value)
    return values


def _rate(series: tuple[Series, ...], edges: Floats) -> Floats:
    values = np.zeros(len(edges) - 1)
    for one in series:
        times, steps = signals.increments(one)
        # A sample taken right at a border tells of the bin before it.
        grown, _ = np.histogram(times - 1e-3, edges, weights=steps)
        values += grown
    return np.asarray(values / np.diff(edges))


def _slow_histogram(series: tuple[Series, ...], edges: Floats) -> tuple[Floats, Floats]:
    usual = signals.quantile(signals.histogram(series, edges[0], edges[-1]), 0.5) or 0.0
    bounds = sorted({float(one.labels.get("le", "inf")) for one in series})
    limit = next((bound for bound in bounds if bound >= 3 * usual), float("inf"))
    fast = np.zeros(len(edges) - 1)
    every = np.zeros(len(edges) - 1)
    for one in series:
        bound = float(one.labels.get("le", "inf"))
        if bound == limit:
            fast += _rate((one,), edges)
        if bound == float("inf"):
            every += _rate((one,), edges)
    share = np.full(len(every), np.nan)
    np.divide(every - fast, every, out=share, where=every > 0)
    return share, every * np.diff(edges)


def _stretch(signal: Signal, until: float) -> tuple[float, float, float] | None:
    """Return weight, start and end of the heaviest stretch of bad bins that reaches the recent past.

    A running sum of (effect - 1) grows in bad bins and falls in quiet ones; a stretch goes from where it last was 0 to
    its peak, and is over when it has fallen by half a minute of quiet.
    """
    known = ~np.isnan(signal.values)
    if known.sum() < 2:
        return None
    usual = float(np.quantile(signal.values[known], 0.2))
    effects = np.clip((np.nan_to_num(signal.values, nan=usual) - usual) / signal.effect, 0.0, MOST_EFFECTS)
    best: tuple[float, int, int] | None = None
    running = peak = 0.0
    start = 0
    for place, gain in enumerate((effects - 1.0).tolist()):
        if running <= 0.0:
            running, peak, start = 0.0, 0.0, place
        running += gain
        if running > peak:
            peak = running
            recent = signal.edges[place + 1] >= until - RECENT_SECONDS
            if recent and peak >= LEAST_WEIGHT and (best is None or peak > best[0]):
                best = (peak, start, place + 1)
        elif peak - running >= QUIET_BINS:
            running = 0.0
    return None if best is None else (best[0], float(signal.edges[best[1]]), float(signal.edges[best[2]]))


def _refined(evidence: Evidence, onset: float) -> float:
    """Move the onset from the border of its bin to the first slow or failed request around it."""
    rows = evidence.rows
    if rows is None or not len(rows):
        return onset
    slow = evidence.at(replace(evidence.window, onset=onset)).slow()
    bad = slow | np.isin(rows.outcome, [OUTCOMES.index("error"), OUTCOMES.index("degraded")])
    near = rows.start_s[bad & (rows.start_s >= onset - 1.0) & (rows.start_s < onset + BIN_SECONDS)]
    return float(near.min()) if len(near) else onset
