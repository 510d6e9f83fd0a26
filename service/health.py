"""Judge liveness and readiness; plain values in, status and document out."""

from __future__ import annotations

from typing import Any, Final

from service.lifecycle import State

__all__ = ["liveness", "readiness"]

_MENDS: Final = {
    "model_missing": "inferdeck train",
    "model_damaged": "inferdeck train",
    "model_failed": "see the detail and the service's log",
}


def liveness(tick_age_seconds: float, limit_seconds: float, pid: int) -> tuple[int, dict[str, Any]]:
    """Return 200 while the event loop runs now and then, 503 once it has not for longer than the limit."""
    alive = tick_age_seconds <= limit_seconds
    document = {
        "status": "live" if alive else "event_loop_blocked",
        "loop_tick_age_s": round(tick_age_seconds, 3),
        "loop_tick_limit_s": limit_seconds,
        "pid": pid,
    }
    return (200 if alive else 503), document


def readiness(state: State, pid: int) -> tuple[int, dict[str, Any]]:
    """Return 200 when judgements are given; else 503 that tells warming up from what a person must mend."""
    if state.ready:
        warning = {"warning": state.detail} if state.detail else {}
        return 200, {"status": "ready", "phase": state.phase, "pid": pid, **warning}
    if not state.failed:
        return 503, {"status": "warming", "phase": state.phase, "pid": pid}
    mend = _MENDS[state.phase]
    return 503, {"status": "not_ready", "phase": state.phase, "reason": state.detail, "mend": mend, "pid": pid}
