"""Is it the instruments that fail, while the service goes on?"""

from __future__ import annotations

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.targets import down_seconds

__all__ = ["exporter_target_down", "metrics_age", "rows_still_written", "service_answers"]


def exporter_target_down(evidence: Evidence) -> StepResult:
    """Return for how many seconds the exporter's target had not answered Prometheus at the end of the incident."""
    up = evidence.get(signals.UP)
    value = None if up is None else down_seconds(up, signals.EXPORTER_JOB, evidence.window.incident[1])
    detail = "no such target known" if value is None else ("answers" if not value else f"no answer for {value:.0f} s")
    return StepResult(
        "telemetry.exporter_target_down", value, "prometheus", f'up{{job="{signals.EXPORTER_JOB}"}}', detail
    )


def service_answers(evidence: Evidence) -> StepResult:
    """Return whether the service's own target answered at the end."""
    up = evidence.get(signals.UP)
    down = None if up is None else down_seconds(up, signals.SERVICE_JOB, evidence.window.incident[1])
    value = None if down is None else down == 0.0
    detail = {None: "no such target known", True: "answers", False: "does not answer"}[value]
    return StepResult("telemetry.service_answers", value, "prometheus", f'up{{job="{signals.SERVICE_JOB}"}}', detail)


def rows_still_written(evidence: Evidence) -> StepResult:
    """Return whether a worker wrote rows or status pages up to the end: the service records, nobody reads."""
    rows = evidence.rows
    if rows is None or not rows.rings:
        return StepResult("telemetry.rows_still_written", None, "ring", "ring files: last sign", "no file known")
    age = evidence.window.incident[1] - max(ring.last_sign_s for ring in rows.rings)
    detail = f"last row or status page {max(age, 0.0):.0f} s before the end"
    return StepResult("telemetry.rows_still_written", age < 5.0, "ring", "ring files: last sign", detail)


def metrics_age(evidence: Evidence) -> StepResult:
    """Return the age in seconds of the newest sample that the exporter gave, at the end of the incident."""
    until = evidence.window.incident[1]
    newest = -np.inf
    # Three families that a living exporter always shows, traffic or not.
    for query in (signals.REQUESTS, signals.LAG_BUCKET, signals.IN_FLIGHT):
        for one in evidence.get(query) or ():
            before = one.times[one.times <= until]
            newest = max(newest, float(before[-1])) if len(before) else newest
    value = None if np.isinf(newest) else until - newest
    detail = "never had a sample" if value is None else f"newest sample {value:.0f} s before the end"
    return StepResult("telemetry.metrics_age", value, "prometheus", signals.REQUESTS, detail)
