"""What became of one try to send: sent, worth another try, or refused for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["MOST_WAIT_SECONDS", "Outcome", "Request", "by_status", "refused", "retry", "sent"]

# A receiver may ask for a pause; one of an hour would be a loss by another name.
MOST_WAIT_SECONDS: Final = 300.0
# Answers below 500 that say "later", not "no" (RFC 9110; 425 of RFC 8470).
_LATER: Final = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Request:
    """One HTTP request to be posted."""

    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json; charset=utf-8"),)


@dataclass(frozen=True)
class Outcome:
    """One try.

    Attributes:
        state: sent, retry or refused.
        detail: What the receiver said, without secrets.
        wait_seconds: How long it asked to wait; 0 for no wish.
    """

    state: Literal["sent", "retry", "refused"]
    detail: str
    wait_seconds: float = 0.0


def sent() -> Outcome:
    """Return that it arrived."""
    return Outcome("sent", "")


def retry(detail: str, wait_seconds: float = 0.0) -> Outcome:
    """Return that another try may help."""
    return Outcome("retry", detail, min(max(wait_seconds, 0.0), MOST_WAIT_SECONDS))


def refused(detail: str) -> Outcome:
    """Return that no further try will help."""
    return Outcome("refused", detail)


def by_status(status: int, said: str, retry_after: str = "") -> Outcome:
    """Return the outcome that an HTTP status means: 2xx sent, 408, 425, 429 and 5xx later, all else refused.

    A redirection is refused: it would carry the message, and its secret, to somebody else.

    Args:
        status: HTTP status.
        said: What came with it.
        retry_after: Header Retry-After in seconds; a date there is no wish.
    """
    if 200 <= status < 300:
        return sent()
    detail = f"HTTP {status}" + (f": {' '.join(said.split())[:120]}" if said.strip() else "")
    if status in _LATER or status >= 500:
        return retry(detail, float(retry_after) if retry_after.isdecimal() else 0.0)
    return refused(detail)
