"""What `status` says about each part: process, port, health, last scrape, and the last words of the dead."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

from inferdeck.http_get import Unreachable, get, get_json
from inferdeck.stack.process import is_alive, log_tail
from inferdeck.stack.state import PartState, StackState

__all__ = ["JOB_OF_PART", "describe", "last_scrapes"]

ORPHANED = "its supervisor is gone, so that nothing is started again; run `inferdeck down`, then `inferdeck up`"
JOB_OF_PART = {"service": "service", "exporter": "inferdeck-exporter", "triage": "triage", "prometheus": "prometheus"}


def last_scrapes(prometheus_url: str, now: float) -> dict[str, float]:
    """Return the age of the last scrape by job, in seconds; empty when Prometheus cannot be asked.

    Args:
        prometheus_url: Base URL.
        now: Wall clock, in seconds.
    """
    try:
        targets = get_json(f"{prometheus_url}/api/v1/targets?state=active")["data"]["activeTargets"]
    except (Unreachable, KeyError, TypeError):
        return {}
    ages: dict[str, float] = {}
    for target in targets:
        try:
            # nanoseconds are more digits than fromisoformat takes
            stamp = datetime.fromisoformat(target["lastScrape"][:19] + "+00:00").timestamp()
            job = target["labels"]["job"]
        except (KeyError, ValueError, TypeError):
            continue
        # a target that was never scraped carries year 1
        if stamp > 0:
            ages[job] = round(max(0.0, now - stamp), 1)
    return ages


def _health(part: PartState, alive: bool, phase: str) -> tuple[str, str]:
    """Return one of up, unhealthy, stopped, dead, absent, and a word about it."""
    if part.left_out is not None:
        return "absent", part.left_out
    if not alive:
        # `down` has ended it: its last words are no news
        if phase == "stopped":
            return "stopped", ""
        if part.exit_code is not None:
            return (
                "dead",
                f"ended with {part.exit_code}" if part.exit_code >= 0 else f"killed by signal {-part.exit_code}",
            )
        return "dead", "not running; its end was not seen"
    # a process that runs may still not answer: both are asked
    try:
        code, body = get(part.health_url, 2.0)
    except Unreachable as error:
        return "unhealthy", str(error)
    return ("up", "") if code == 200 else ("unhealthy", f"answers {code}: {body[:200].decode(errors='replace')}")


def describe(state: StackState | None, state_dir: Path, now: float | None = None) -> dict[str, Any]:
    """Return the state of a stack in the shape of `status`.

    Args:
        state: What is written down; None when nothing is.
        state_dir: State folder.
        now: Wall clock, in seconds.

    Returns:
        `state` is up, degraded (a part is dead or unhealthy) or down; `parts` tells each.
    """
    now = time.time() if now is None else now
    if state is None:
        return {"state": "down", "note": "", "state_dir": str(state_dir), "ring_dir": None, "parts": []}
    prometheus = state.part("prometheus")
    ages = last_scrapes(prometheus.url, now) if prometheus and prometheus.record and is_alive(prometheus.record) else {}
    rows = []
    for part in state.parts:
        alive = part.record is not None and is_alive(part.record)
        health, detail = _health(part, alive, state.phase)
        rows.append(
            {
                "name": part.name,
                "health": health,
                "detail": detail,
                "pid": part.record.pid if part.record and alive else None,
                "port": part.port,
                "url": part.url,
                "last_scrape_age_s": ages.get(JOB_OF_PART.get(part.name, "")),
                "exit_code": part.exit_code,
                "log": part.record.log if part.record else None,
                "log_tail": log_tail(Path(part.record.log)) if part.record and health == "dead" else [],
            }
        )
    running = any(row["pid"] for row in rows)
    broken = any(row["health"] in {"dead", "unhealthy"} for row in rows)
    orphaned = running and state.supervisor is not None and not is_alive(state.supervisor)
    # a stack that a killed supervisor left behind is degraded, although its parts answer
    overall = "down" if not running else "degraded" if broken or orphaned or state.phase != "ready" else "up"
    return {
        "state": overall,
        "note": ORPHANED if orphaned else "",
        "phase": state.phase,
        "state_dir": state.state_dir,
        "ring_dir": state.ring_dir,
        "parts": rows,
    }
