"""The report of a triage that failed itself: whoever is called must find why, and how to go on by hand."""

from __future__ import annotations

import re
from typing import Any, Final

from runbooks.impact import iso, unknown_impact
from runbooks.pages import PAGES_DIR

__all__ = ["unable"]

# An alert's name comes from outside; as part of a path it may be nothing but a name.
_NAME: Final = re.compile(r"[A-Za-z0-9]{1,100}")
MOST_REASON: Final = 300


def unable(alert: str, at: float, tries: int, error: Exception) -> dict[str, Any]:
    """Return an abstained result, in the engine's shape, that says why nothing could be told.

    Nothing is read but the name of a page: what made the triage fail must not make its report fail.

    Args:
        alert: The alert's name, as sent.
        at: Time that was to be looked at, unix seconds.
        tries: How often it was tried.
        error: What the last try raised.
    """
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_REASON]
    page = PAGES_DIR / f"{alert}.md" if _NAME.fullmatch(alert) else None
    moment = iso(at)
    return {
        "alert": alert or None,
        "window": {"from": moment, "to": moment, "onset": None, "ended": None, "signal": ""},
        "abstained": True,
        "verdict": {
            "slug": None,
            "layer": None,
            "confidence": 0.0,
            "summary": f"The triage itself failed {tries} times, the last time with {reason}. Go on by hand.",
        },
        "impact": unknown_impact(None, at, still_going=None),
        "differs": {"findings": [], "compared": [], "stage": {}, "summary": "cannot be told: the triage failed"},
        "candidates": [],
        "evidence": [],
        "symptoms": [],
        "unusual": [],
        "cannot_be_told": [],
        "mapping": None,
        "missing_sources": [],
        "missing": [],
        "runbook": f"runbooks/{page.name}" if page is not None and page.is_file() else None,
        "mitigations": [],
        "traces": [],
        "report": None,
    }
