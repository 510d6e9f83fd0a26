"""Is it over? The alert's own expression, as the running Prometheus has it loaded, is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import httpx

__all__ = ["POLL_SECONDS", "AlertExpression", "wait_recovered"]

POLL_SECONDS: Final = 5.0
# Right after a restart an expression may be without a result for want of samples: twice in a row is over.
QUIET_POLLS: Final = 2
_MOST_BYTES: Final = 4 << 20


class AlertExpression:
    """The expressions of the loaded rules.

    Args:
        url: Prometheus.
        timeout_seconds: Limit of one question.
        transport: Another transport, for tests.
    """

    def __init__(self, url: str, timeout_seconds: float = 3.0, transport: httpx.BaseTransport | None = None) -> None:
        self._url, self._timeout, self._transport = url.rstrip("/"), timeout_seconds, transport

    def holds(self, alert: str) -> bool | None:
        """Return whether the alert's expression is true now; None when Prometheus or the rule is not there."""
        try:
            with httpx.Client(timeout=self._timeout, transport=self._transport, trust_env=False) as client:
                groups = self._ask(client, "/api/v1/rules", {"type": "alert"})["groups"]
                rules = [rule for group in groups for rule in group["rules"] if rule.get("name") == alert]
                if not rules:
                    return None
                found = self._ask(client, "/api/v1/query", {"query": str(rules[0]["query"])})["result"]
                return bool(found)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _ask(self, client: httpx.Client, path: str, params: dict[str, str]) -> Any:
        answer = client.get(f"{self._url}{path}", params=params)
        answer.raise_for_status()
        if len(answer.content) > _MOST_BYTES:
            raise ValueError("an answer without end")
        return answer.json()["data"]


def wait_recovered(
    holds: Callable[[], bool | None],
    seconds: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    tick: Callable[[], float] = time.monotonic,
) -> bool | None:
    """Wait until it is over.

    Args:
        holds: Whether the alert's expression is true now; None when that cannot be told.
        seconds: How long to wait at most.
        sleep: Waits so many seconds.
        tick: Monotonic seconds.

    Returns:
        True when it is over, False when it is not, None when that could never be told.
    """
    deadline = tick() + seconds
    quiet, told = 0, False
    while True:
        sleep(POLL_SECONDS)
        now = holds()
        told = told or now is not None
        quiet = quiet + 1 if now is False else 0
        if quiet >= QUIET_POLLS:
            return True
        if tick() >= deadline:
            return False if told else None
