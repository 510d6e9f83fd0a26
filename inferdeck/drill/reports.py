"""The reports that alerts start by themselves: Alertmanager's webhook, no question of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get_json

__all__ = ["await_report", "fetch_reports", "named_slug"]


def named_slug(report: dict[str, Any]) -> str | None:
    """Return the slug that a report names, None when triage abstained."""
    verdict = report.get("verdict")
    return str(verdict["slug"]) if isinstance(verdict, dict) and verdict.get("slug") else None


def fetch_reports(triage_url: str) -> list[dict[str, Any]]:
    """Return the reports that the triage service holds, in short, newest first.

    Raises:
        CannotRun: If it does not answer.
    """
    try:
        return [dict(entry) for entry in get_json(f"{triage_url}/reports", 5.0)["reports"]]
    except (Unreachable, KeyError, TypeError) as error:
        raise CannotRun(
            f"the triage service does not list its reports: {error}", "read the stack's logs/triage.log"
        ) from error


def await_report(
    triage_url: str,
    slug: str,
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any] | None:
    """Wait for a report that names *slug*.

    Args:
        triage_url: Base URL of the triage service.
        slug: What it shall name.
        timeout_seconds: How long to wait.
        clock: Monotonic seconds.
        sleep: Waits so many seconds.

    Returns:
        The whole report; the newest other one when none names *slug* in time; None when there is none.

    Raises:
        CannotRun: If the service does not answer.
    """
    deadline = clock() + timeout_seconds
    while True:
        listed = fetch_reports(triage_url)
        # an early report may have abstained: more of the failure is seen half a minute later
        chosen = next((entry for entry in listed if named_slug(entry) == slug), None)
        if chosen is None and clock() > deadline:
            chosen = next(iter(listed), None)
            if chosen is None:
                return None
        if chosen is not None:
            try:
                report: dict[str, Any] = get_json(f"{triage_url}/reports/{chosen['id']}", 5.0)
            except Unreachable as error:
                raise CannotRun(f"the triage service does not show its report: {error}") from error
            return report
        sleep(0.5)
