"""Triage: from a time, or an alert, to the layer and the cause with the evidence, or to an honest "cannot tell"."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from runbooks.differs import what_differs
from runbooks.evidence import Evidence, StepResult, Window
from runbooks.impact import iso, measure_impact, worst_traces
from runbooks.mapping.told import absent_metrics, mapping_told
from runbooks.onset import find_window, first_known
from runbooks.pages import Page, load_pages
from runbooks.payloads import Notification, parse_payload
from runbooks.plots import decisive_plots
from runbooks.prometheus_source import SourceMissingError
from runbooks.scoring import Candidate, rank, score_page
from runbooks.sources import Missing, Sources, gather
from runbooks.steps.registry import STEPS, StepFunction
from runbooks.unknown_alert import unknown_alert
from runbooks.unusual import unusual_signals
from runbooks.without_rows import symptoms, untold, without_rows

__all__ = ["LOOKBACK_SECONDS", "When", "triage"]

When = float | datetime | str

# Long enough for a baseline beside an incident of ten minutes, short enough for one read of the rings.
LOOKBACK_SECONDS: Final = 900.0
# An alert's startsAt lies at the end of its `for`; half a minute on, more of the incident is seen.
AFTER_ALERT_SECONDS: Final = 30.0
STEP_SECONDS: Final = 2.0
STEPS_SECONDS: Final = 5.0


def triage(
    sources: Sources,
    alert: str | None = None,
    payload: Mapping[str, Any] | Notification | None = None,
    at: When | None = None,
    window: tuple[When, When] | float | None = None,
    *,
    clock: Callable[[], float] = time.time,
    pages: Mapping[str, Page] | None = None,
) -> dict[str, Any]:
    """Find what is wrong, and where.

    Args:
        sources: Where evidence comes from.
        alert: Name of the alert that fired; it sets the time to look at and gets no bonus.
        payload: Alertmanager's or Grafana's notification, as JSON or parsed; gives alert and time.
        at: Time to look at (unix seconds, datetime or RFC 3339); now when absent.
        window: Seconds to look back from that time, or (from, to).
        clock: Wall clock, unix seconds.
        pages: Runbooks by slug; the shipped ones when absent.

    Returns:
        The result that the triage verb shows; `version`, `commit`, `started` and `took_s` are added by the caller.

    Raises:
        runbooks.payloads.PayloadError: If the payload cannot be read.
        ValueError: If a time cannot be read or the window is empty.
    """
    now = clock()
    known = load_pages() if pages is None else pages
    notification = parse_payload(payload) if isinstance(payload, Mapping) else payload
    since, until, alert = _span(sources, alert=alert, notification=notification, at=at, window=window, now=now)
    evidence, missing = gather(sources, since, until, clock)
    evidence = evidence.at(replace(evidence.window, known=first_known(evidence)))
    evidence = evidence.at(find_window(evidence))
    failures = [page for page in known.values() if page.kind == "failure"]
    measured = _measure(evidence, {step.run for page in known.values() for step in page.steps})
    candidates = rank([score_page(page, measured) for page in failures])
    result = _result(evidence, missing, candidates, measured=measured, alert=alert, pages=known)
    absent = absent_metrics(sources.mapping, evidence) if sources.mapping else {}
    return result | {
        "cannot_be_told": untold(evidence, absent),
        "mapping": mapping_told(sources.mapping, absent) if sources.mapping else None,
    }


def unix(when: When) -> float:
    """Return a time as unix seconds.

    Raises:
        ValueError: If a text is no RFC 3339 time or number, or the time is one that cannot be written down.
    """
    if isinstance(when, str):
        try:
            seconds = float(when)
        except ValueError:
            return unix(datetime.fromisoformat(when))
    elif isinstance(when, datetime):
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = float(when)
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{when} is no time between the years 1 and 9999") from error
    return seconds


def _span(
    sources: Sources,
    *,
    alert: str | None,
    notification: Notification | None,
    at: When | None,
    window: tuple[When, When] | float | None,
    now: float,
) -> tuple[float, float, str | None]:
    """Return from and to of what is looked at, and the alert's name."""
    first = next(iter(notification.firing()), None) if notification else None
    alert = alert or (first.name if first else None)
    if isinstance(window, tuple):
        since, until = unix(window[0]), unix(window[1])
        if since >= until:
            raise ValueError("the window ends before it begins; give (from, to)")
        return since, until, alert
    if at is not None:
        until = unix(at)
    elif first is not None:
        until = first.starts_at + AFTER_ALERT_SECONDS
    else:
        until = _last_firing(sources, alert, now)
    # Clocks differ; nothing can be known about the future.
    until = min(until, now)
    return until - (window if window is not None else LOOKBACK_SECONDS), until, alert


def _last_firing(sources: Sources, alert: str | None, now: float) -> float:
    """Return the time to look at for an alert given by name alone: its last firing within the hour, else now."""
    if alert is None or sources.prometheus is None:
        return now
    try:
        span = sources.prometheus.alert_span(alert, now - 3600.0, now)
    except SourceMissingError:
        return now
    return now if span is None or span[1] > now - 60.0 else span[1]


def _measure(evidence: Evidence, names: set[str], steps: Mapping[str, StepFunction] = STEPS) -> dict[str, StepResult]:
    """Run steps, each in its own time limit; one that fails or is late cannot see, and the rest goes on."""
    measured: dict[str, StepResult] = {}
    evidence.slow()  # shared by many steps: once, before they run side by side
    pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="triage-step")
    for name in names - set(steps):
        # A page of another version: it costs that step, and `inferdeck check` names the page.
        measured[name] = StepResult(name, None, "none", detail="step missing: this version has no such step")
    started = {name: pool.submit(steps[name], evidence) for name in sorted(names & set(steps))}
    deadline = time.monotonic() + STEPS_SECONDS
    for name, future in started.items():
        try:
            measured[name] = future.result(timeout=max(0.0, min(STEP_SECONDS, deadline - time.monotonic())))
        except TimeoutError:
            measured[name] = StepResult(name, None, "none", detail="took too long")
        except Exception as error:  # noqa: BLE001 - a broken step costs that step, and says so
            measured[name] = StepResult(
                name, None, "none", detail=f"failed: {type(error).__name__}: {str(error)[:120]}"
            )
    pool.shutdown(wait=False, cancel_futures=True)
    if evidence.rows is None:
        for name, one in measured.items():
            if one.value is None and one.source == "ring":
                measured[name] = replace(one, detail=without_rows(one.detail))
    return measured


def _result(
    evidence: Evidence,
    missing: list[Missing],
    candidates: list[Candidate],
    *,
    measured: Mapping[str, StepResult],
    alert: str | None,
    pages: Mapping[str, Page],
) -> dict[str, Any]:
    window = evidence.window
    # A runbook is shown even without a verdict: the alert's own says how to go on by hand.
    named = candidates[0] if candidates and candidates[0].nameable else None
    others = [one for one in candidates[1:] if one.nameable] if named else []
    page = named.page if named else next((one for one in pages.values() if one.alert == alert), None)
    unusual = [] if named else unusual_signals(evidence)
    shown = symptoms(evidence)
    differs = what_differs(evidence)
    return {
        "alert": alert,
        "window": {
            "from": iso(window.since),
            "to": iso(window.until),
            "onset": iso(window.onset),
            "ended": iso(window.incident[1]) if window.onset is not None else None,
            "signal": window.signal,
        },
        "abstained": named is None,
        "verdict": {
            "slug": named.page.slug if named else None,
            "layer": named.page.layer if named else None,
            "confidence": round(named.confidence if named else max((c.confidence for c in candidates), default=0.0), 3),
            "summary": _summary(window, named, others, differs=differs, unusual=unusual, missing=missing, shown=shown)
            + unknown_alert(alert, [one.alert for one in pages.values()]),
        },
        "impact": measure_impact(evidence),
        "differs": differs,
        "candidates": [
            {
                "slug": one.page.slug,
                "layer": one.page.layer,
                "score": round(one.score, 3),
                "confidence": round(one.confidence, 3),
                "reasons": list(one.reasons),
                "explained_by": one.explained_by,
            }
            for one in candidates
        ],
        "evidence": _evidence(candidates, measured, pages),
        "symptoms": shown,
        "unusual": unusual,
        "missing_sources": [one.source for one in missing],
        "missing": [{"source": one.source, "reason": one.reason, "cost": one.cost} for one in missing],
        "runbook": f"runbooks/{page.path}" if page else None,
        "mitigations": [{"do": one.do, "undo": one.undo} for one in named.page.mitigations] if named else [],
        "traces": worst_traces(evidence),
        "plots": decisive_plots(evidence),
        "report": None,
    }


def _summary(
    window: Window,
    named: Candidate | None,
    others: list[Candidate],
    *,
    differs: dict[str, Any],
    unusual: list[dict[str, Any]],
    missing: list[Missing],
    shown: list[dict[str, Any]],
) -> str:
    if named:
        since = f" Since {iso(window.onset)}." if window.onset is not None else ""
        beside = f" At the same time: {', '.join(one.page.slug for one in others)}." if others else ""
        return f"{named.page.summary}{since}{beside}"
    if len(missing) == 2:
        return "Nothing can be told: neither Prometheus nor rows could be read."
    if shown:
        # Without rows no cause may be nameable; what users feel can still be said.
        return f"No cause can be named without rows. The metrics tell: {'; '.join(one['text'] for one in shown)}."
    if unusual:
        first = unusual[0]
        hit = f" Hit: {differs['summary']}." if differs["findings"] else ""
        return f"No known cause fits. Most unusual: {first['signal']} (layer {first['layer']}).{hit}"
    return "No known cause fits, and no signal left its usual level."


def _evidence(
    candidates: list[Candidate], measured: Mapping[str, StepResult], pages: Mapping[str, Page]
) -> list[dict[str, Any]]:
    """Return every judged step once, the best candidate's first; symptom pages' steps follow as facts."""
    symptoms = [score_page(page, measured) for page in pages.values() if page.kind == "symptom"]
    judged: dict[tuple[str, str], StepResult] = {}
    asked_by: dict[tuple[str, str], list[str]] = {}
    for one in (*candidates, *symptoms):
        for step in one.steps:
            judged.setdefault((step.step, step.expected), step)
            asked_by.setdefault((step.step, step.expected), []).append(one.page.slug)
    return [
        {
            "step": one.step,
            "value": one.value,
            "expected": one.expected,
            "holds": one.holds,
            "source": one.source,
            "query": one.query,
            "detail": one.detail,
            "asked_by": asked_by[key],
        }
        for key, one in judged.items()
    ]
