"""Is the event loop of the service blocked by synchronous work? Told by lag, what stands still, and the stack."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Episode, Floats, RingLife, Rows

__all__ = [
    "blocked_share",
    "blocking_stack",
    "gc_share",
    "lag_ratio",
    "lag_share",
    "loop_tick_age",
    "others_move_on",
    "slow_overlap",
    "stacks_at_work",
    "starved_share",
]

# The loop ticks every 20 ms (docs/architecture.md, section 2): what is later than one more tick is no timer noise.
NOISE_SECONDS = 0.02
# Below this share a baseline is quiet, and ratios to it would only magnify noise.
QUIET_SHARE = 0.002
# The service keeps the last 32 episodes; a full list says nothing about the time before its first.
KEPT_EPISODES = 32
# A ratio from fewer expected requests than this is chance.
LEAST_EXPECTED_REQUESTS = 8.0
# A pause is one of more than this many usual distances between requests.
PAUSE_REQUESTS = 2.5
# Plenty for a ratio, and it bounds the work.
MOST_STRETCHES = 300
# What takes this share of a blocked time made it: the loop's thread by its CPU, or a machine that stood still.
MOST_OF_IT = 0.5
# Frames in which an idle or waiting loop is found: they name nobody.
IDLE_FRAMES = ("selectors.py", "base_events.py", "run_once", "uvloop", "runners.py")


def _late_seconds(evidence: Evidence, since: float, until: float) -> float | None:
    series = evidence.get(signals.LAG_BUCKET)
    if series is None:
        return None
    counts = signals.histogram(series, since, until)
    if not sum(counts.values()):
        return None
    late, lower = 0.0, 0.0
    for bound, count in counts.items():
        if lower >= NOISE_SECONDS:
            # Geometric middle of the bucket; bounds lie within a factor 2.5, so the error is within a factor 1.6.
            late += count * (lower if math.isinf(bound) else math.sqrt(lower * bound))
        lower = bound
    return late


def lag_share(evidence: Evidence) -> StepResult:
    """Return the share of the incident that the loop spent in lags over 20 ms, from the lag histogram."""
    since, until = evidence.window.incident
    late = _late_seconds(evidence, since, until)
    value = None if late is None else late / max(until - since, 1.0)
    return StepResult(
        "event_loop.lag_share",
        value,
        "prometheus",
        f"sum by (le) (increase({signals.LAG_BUCKET}[1m]))",
        "no lag histogram" if value is None else f"the loop was late for {value:.1%} of the time (lags over 20 ms)",
    )


def lag_ratio(evidence: Evidence) -> StepResult:
    """Return that share over the same service's share before the onset."""
    since, until = evidence.window.baseline
    before = _late_seconds(evidence, since, until) if until - since >= 20.0 else None
    now = lag_share(evidence).value
    value = None
    if before is not None and isinstance(now, float):
        value = now / max(before / (until - since), QUIET_SHARE)
    detail = "no healthy time to compare with" if value is None else f"{value:.1f} times the share before"
    return StepResult("event_loop.lag_ratio", value, "prometheus", f"{signals.LAG_BUCKET} against the baseline", detail)


def _episodes(evidence: Evidence) -> list[tuple[RingLife, list[Episode], float]] | None:
    """Return per live ring its episodes within the incident, and since when the list is complete; None if unknown."""
    if evidence.rows is None:
        return None
    since, until = evidence.window.incident
    found = []
    for ring in evidence.rows.rings:
        if not ring.status or ring.last_sign_s < since or ring.started_s > until:
            continue
        full = len(ring.episodes) >= KEPT_EPISODES
        known = max(since, min(one.start_s for one in ring.episodes)) if full else since
        if known < until:
            inside = [one for one in ring.episodes if known <= one.start_s + one.duration_s and one.start_s < until]
            found.append((ring, inside, known))
    return found or None


def blocked_share(evidence: Evidence) -> StepResult:
    """Return the share of time in blocked episodes (over 0.1 s) of the worst worker, from the status pages."""
    known = _episodes(evidence)
    until = evidence.window.incident[1]
    value = None
    if known:
        value = max(
            sum(min(one.start_s + one.duration_s, until) - max(one.start_s, since) for one in inside)
            / max(until - since, 1.0)
            for _, inside, since in known
        )
    detail = "no status page covers the incident" if value is None else f"blocked for {value:.1%} of the time"
    return StepResult("event_loop.blocked_share", value, "ring", "status pages: blocked[]", detail)


def blocking_stack(evidence: Evidence) -> StepResult:
    """Return the frame that is found most often while the loop stands still: the user's own, else the innermost."""
    frames: Counter[str] = Counter()
    places: dict[str, Counter[str]] = {}
    for _, inside, _ in _episodes(evidence) or []:
        for episode in inside:
            if episode.frame and not _idle(episode):
                frames[episode.frame] += 1
                places.setdefault(episode.frame, Counter())[episode.place] += 1
    if not frames:
        return StepResult(
            "event_loop.blocking_stack", None, "ring", "status pages: blocked[].stack", "no stack was taken"
        )
    frame, count = frames.most_common(1)[0]
    return StepResult(
        "event_loop.blocking_stack",
        frame,
        "ring",
        "status pages: blocked[].stack",
        f"{places[frame].most_common(1)[0][0]} ran in {count} of {frames.total()} blocked times",
    )


def _idle(episode: Episode) -> bool:
    return any(idle in episode.frame for idle in IDLE_FRAMES)


def _at_work(episode: Episode) -> bool | None:
    """Return whether the loop's thread worked in a blocked time; False if the machine stalled, None if unknown."""
    busy = episode.cpu_s is not None and episode.cpu_s >= MOST_OF_IT * episode.duration_s
    late = episode.thread_late_s is not None and episode.thread_late_s >= MOST_OF_IT * episode.duration_s
    late = late or (episode.run_wait_s is not None and episode.run_wait_s >= MOST_OF_IT * episode.duration_s)
    # Code that holds the GIL keeps the watching thread waiting too, but it computes; a stalled machine does neither.
    if late and not busy and episode.cpu_s is not None:
        return False
    if busy:
        return True
    # A stack that was not taken, or too late, says nothing about the machine.
    return None if not episode.frame else not _idle(episode)


def stacks_at_work(evidence: Evidence) -> StepResult:
    """Return the share of blocked times in which the loop's thread worked: of those whose stack or CPU time tells.

    Against it speak only an idle loop's stack while the tick is late, and a watching thread that stood still as well.
    """
    told = [_at_work(one) for _, inside, _ in _episodes(evidence) or () for one in inside]
    known = [one for one in told if one is not None]
    step, query = "event_loop.stacks_at_work", "status pages: blocked[].stack, cpu_ns, thread_late_ns"
    if len(known) < 3:
        return StepResult(step, None, "ring", query, "fewer than three blocked times left a stack or a sign of work")
    detail = f"{sum(known)} of {len(known)} blocked times show work"
    return StepResult(step, sum(known) / len(known), "ring", query, detail)


def starved_share(evidence: Evidence) -> StepResult:
    """Return the share of the blocked time in which the loop's thread was ready to run and got no CPU.

    Near 1 the host starves the process: whatever its loop runs is late, and no code of it is at fault. By time, not by
    count: many short waits must not outvote the long calls between them.
    """
    step, query = "event_loop.starved_share", "status pages: blocked[].run_wait_ns"
    blocked, waited = waited_for_cpu(evidence)
    if blocked <= 0:
        return StepResult(step, None, "ring", query, "no blocked time tells how long its thread waited for a CPU")
    detail = f"of {blocked:.2f} s blocked the loop waited {waited:.2f} s for a CPU"
    return StepResult(step, waited / blocked, "ring", query, detail)


def waited_for_cpu(evidence: Evidence) -> tuple[float, float]:
    """Return the seconds of blocked times that tell of it, and how many of them the loop's thread waited for a CPU."""
    told = [one for _, inside, _ in _episodes(evidence) or () for one in inside if one.run_wait_s is not None]
    return sum(one.duration_s for one in told), sum(min(one.run_wait_s or 0.0, one.duration_s) for one in told)


def gc_share(evidence: Evidence) -> StepResult:
    """Return the share of the late time that garbage collection explains."""
    since, until = evidence.window.incident
    late = _late_seconds(evidence, since, until)
    pauses = evidence.get(signals.GC_PAUSE)
    value = None
    if late and pauses is not None:
        value = signals.increase(pauses, since, until) / late
    detail = "cannot tell" if value is None else f"collector pauses make up {value:.1%} of the late time"
    return StepResult("event_loop.gc_share", value, "prometheus", f"increase({signals.GC_PAUSE}[1m])", detail)


def loop_tick_age(evidence: Evidence) -> StepResult:
    """Return the oldest age of the loop's tick over that of the plain thread, in seconds.

    A loop that never returns lets the first grow; a process that stands still as a whole lets both grow alike.
    """
    since, until = evidence.window.incident
    times, lead = signals.heartbeat_lead(evidence.get(signals.HEARTBEAT) or ())
    ages = lead[(times >= since) & (times <= until)].tolist()
    source = "prometheus" if ages else "ring"
    if not ages and evidence.rows is not None:
        ages = [
            ring.loop_tick_age_s
            for ring in evidence.rows.rings
            if ring.loop_tick_age_s is not None and since <= ring.last_sign_s <= until + 5.0
        ]
    value = max(ages, default=None)
    detail = (
        "no heartbeat known"
        if value is None
        else f"the loop's last tick was up to {value:.2f} s older than the thread's"
    )
    return StepResult("event_loop.loop_tick_age", value, source, f'{signals.HEARTBEAT}{{source="loop"}}', detail)


def _stretches(evidence: Evidence, rows: Rows, ring: str) -> list[tuple[float, float]]:
    """Return start and end of one worker's slow requests, those in flight at the end included, none overlapping.

    The longest come first: what was held up by a blocked loop rushes through right after it, and that rush, itself
    slow, would hide the standstill before it.
    """
    since, until = evidence.window.incident
    slow = evidence.slow() & rows.between(since, until) & (rows.ring == ring)
    picked = np.nonzero(slow)[0]
    picked = picked[np.argsort(-rows.duration_s[picked], kind="stable")][:MOST_STRETCHES]
    stretches = [(float(rows.start_s[i]), float(rows.end_s[i])) for i in picked]
    if any(one.ring == ring and one.last_sign_s >= until - 5.0 for one in rows.rings):
        waiting = [one.start_s for one in rows.open if one.ring == ring and one.start_s < until - 1.0]
        if waiting:
            stretches.insert(0, (max(min(waiting), since), until))
    kept: list[tuple[float, float]] = []
    for start, end in stretches:
        if all(end <= other[0] or start >= other[1] for other in kept):
            kept.append((start, end))
    return kept


def _typical_lag(evidence: Evidence) -> float | None:
    """Return the mean seconds of the lags over 20 ms in the incident, else of its episodes; None if unknown."""
    since, until = evidence.window.incident
    late = _late_seconds(evidence, since, until)
    counts = signals.histogram(evidence.get(signals.LAG_BUCKET) or (), since, until)
    number = sum(count for bound, count in counts.items() if bound > NOISE_SECONDS)
    if late and number:
        return late / number
    lengths = [one.duration_s for _, inside, _ in _episodes(evidence) or () for one in inside]
    return float(np.mean(lengths)) if lengths else None


def others_move_on(evidence: Evidence) -> StepResult:
    """Return the share of slow requests' time in which other requests of the worker start or end as usual.

    While a loop is blocked nothing else moves: near 0, however many requests block it. Beside a request that merely
    waits, or on a busy machine, the others go on: requests at random leave pauses of more than 2.5 usual distances for
    (1 + 2.5) exp(-2.5) = 29% of the time, hence near 0.7. Lags too short to be such a pause cannot be told this way.
    """
    rows = evidence.rows
    step, query = "event_loop.others_move_on", "rows: starts and ends of the same worker inside slow requests"
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    standing = total = short = expected = 0.0
    lag = _typical_lag(evidence)
    for ring in set(rows.ring.tolist()):
        mine = rows.ring == ring
        events = np.sort(np.concatenate([rows.start_s[mine], rows.end_s[mine]]))
        # A short request's start and end lie side by side: requests, not events, come at random.
        rate = _request_rate(evidence, rows.end_s[mine])
        if rate <= 0 or (lag is not None and rate * lag < PAUSE_REQUESTS):
            continue
        for start, end in _stretches(evidence, rows, ring):
            # No pause of that length fits into a shorter stretch, whatever happens in it.
            if (end - start) * rate < 1.2 * PAUSE_REQUESTS:
                short += end - start
                continue
            first, last = np.searchsorted(events, (start, end), side="right")
            gaps = np.diff(np.concatenate([[start], np.clip(events[first:last], start, end), [end]]))
            standing += float(gaps[gaps * rate > PAUSE_REQUESTS].sum())
            total += end - start
            expected += rate * (end - start)
    if expected < LEAST_EXPECTED_REQUESTS or short > total:
        return StepResult(step, None, "ring", query, "too few slow requests, too little traffic, or too short lags")
    value = 1.0 - standing / total
    detail = f"others start and end as usual in {value:.0%} of the time of slow requests"
    return StepResult(step, value, "ring", query, detail)


def _request_rate(evidence: Evidence, ends: Floats) -> float:
    """Return a worker's usual requests a second: the higher of incident and baseline.

    A loop that is blocked most of the time serves few: then the baseline tells what is usual, in a surge the incident.
    """
    rates = [0.0]
    for since, until in (evidence.window.incident, evidence.window.baseline):
        if until - since >= 10.0:
            rates.append(float(((ends >= since) & (ends < until)).sum()) / (until - since))
    if len(rates) == 1 and len(ends) > 1:
        # Both are too short for a rate of their own: all that is known stands in.
        rates.append(len(ends) / max(float(ends.max() - ends.min()), 1.0))
    return max(rates)


def _episodes_tell_most(evidence: Evidence) -> bool:
    """Return whether episodes hold at least half of the late time; blocks around 0.1 s show in part."""
    since, until = evidence.window.incident
    late = _late_seconds(evidence, since, until)
    if late is None:
        return True
    told = blocked_share(evidence).value
    return isinstance(told, float) and told >= 0.5 * late / max(until - since, 1.0)


def slow_overlap(evidence: Evidence) -> StepResult:
    """Return the share of slow requests that overlap a blocked episode of their own worker."""
    known, rows = _episodes(evidence), evidence.rows
    step, query = "event_loop.slow_overlap", "rows against status pages: blocked[]"
    hit = total = 0
    if known and rows is not None:
        slow = evidence.slow()
        for ring, inside, since in known:
            mine = slow & (rows.ring == ring.ring) & rows.between(since, evidence.window.incident[1])
            mine &= rows.start_s >= since
            total += int(mine.sum())
            overlaps = np.zeros(len(rows), dtype=bool)
            for one in inside:
                # What was held up rushes in right after and is slow too; a fifth of the block covers that rush.
                aftermath = one.start_s + 1.2 * one.duration_s + 0.02
                overlaps |= (rows.start_s < aftermath) & (rows.end_s > one.start_s)
            hit += int((mine & overlaps).sum())
    if not known or not any(inside for _, inside, _ in known) or total < 5 or not _episodes_tell_most(evidence):
        return StepResult(
            step, None, "ring", query, "no episode, or too few slow requests, or most lags shorter than 0.1 s"
        )
    return StepResult(step, hit / total, "ring", query, f"{hit} of {total} slow requests met a blocked loop")
