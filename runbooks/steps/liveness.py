"""Is the service there at all? Told by its scrape target, its workers' files, and requests that never ended."""

from __future__ import annotations

from collections import Counter

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.targets import down_seconds

__all__ = ["exporter_answers", "requests_stopped", "service_target_down", "silent_workers", "unfinished_requests"]

# Requests begun this long before the last sign of life belong to the death.
BEFORE_DEATH_SECONDS = 60.0
# Under one request in two seconds a pause says nothing.
LEAST_RATE = 0.5


def service_target_down(evidence: Evidence) -> StepResult:
    """Return for how many seconds the service's own target had not answered Prometheus at the end of the incident."""
    up = evidence.get(signals.UP)
    value = None if up is None else down_seconds(up, signals.SERVICE_JOB, evidence.window.incident[1])
    detail = "no such target known" if value is None else ("answers" if not value else f"no answer for {value:.0f} s")
    return StepResult("liveness.service_target_down", value, "prometheus", f'up{{job="{signals.SERVICE_JOB}"}}', detail)


def silent_workers(evidence: Evidence) -> StepResult:
    """Return for how many seconds no worker had written a row or a status page at the end of the incident."""
    step, query = "liveness.silent_workers", "ring files: last row or status page, owner's lock"
    if evidence.rows is None or not evidence.rows.rings:
        return StepResult(step, None, "ring", query, "no worker's file known")
    newest = max(evidence.rows.rings, key=lambda ring: ring.last_sign_s)
    if newest.last_sign_s < evidence.window.since:
        # A folder that was silent all along may be last week's; it is no sign that something just died.
        return StepResult(step, None, "ring", query, "no worker gave a sign of life in the time looked at")
    value = max(0.0, evidence.window.incident[1] - newest.last_sign_s)
    owner = "still holds its file" if newest.alive else "has let go of its file"
    return StepResult(step, value, "ring", query, f"last sign of life {value:.0f} s before; the process {owner}")


def unfinished_requests(evidence: Evidence) -> StepResult:
    """Return how many requests were in work in workers that fell silent, with their last stage."""
    step, query = "liveness.unfinished_requests", "ring files: open slots of dead workers"
    rows = evidence.rows
    if rows is None or not rows.rings:
        return StepResult(step, None, "ring", query, "no worker's file known")
    since, until = evidence.window.incident
    silent = {ring.ring for ring in rows.rings if ring.last_sign_s < until - 5.0}
    lost = [one for one in rows.open if one.ring in silent and since - BEFORE_DEATH_SECONDS <= one.start_s <= until]
    stages = Counter(one.stage or "no stage yet" for one in lost)
    where = ", ".join(f"{count} in {stage}" for stage, count in stages.most_common(3))
    return StepResult(step, float(len(lost)), "ring", query, f"started and never ended: {where}" if lost else "none")


def requests_stopped(evidence: Evidence) -> StepResult:
    """Return the rate of ended requests in the incident's last half over the rate before it."""
    step, query = "liveness.requests_stopped", "rows per second, incident against baseline"
    rows = evidence.rows
    since, until = evidence.window.incident
    begin, end = evidence.window.baseline
    if rows is None or end - begin < 20.0:
        return StepResult(step, None, "ring", query, "no healthy time to compare with")
    before = float(rows.between(begin, end).sum()) / (end - begin)
    if before < LEAST_RATE:
        return StepResult(step, None, "ring", query, "too little traffic before to tell")
    middle = (since + until) / 2
    now = float(rows.between(middle, until).sum()) / max(until - middle, 1.0)
    return StepResult(step, now / before, "ring", query, f"{before:.1f} requests/s before, {now:.1f} now")


def exporter_answers(evidence: Evidence) -> StepResult:
    """Return whether the exporter's target answered at the end: the machine and its network are there."""
    up = evidence.get(signals.UP)
    down = None if up is None else down_seconds(up, signals.EXPORTER_JOB, evidence.window.incident[1])
    value = None if down is None else down == 0.0
    detail = {None: "no such target known", True: "answers", False: "does not answer"}[value]
    return StepResult("liveness.exporter_answers", value, "prometheus", f'up{{job="{signals.EXPORTER_JOB}"}}', detail)
