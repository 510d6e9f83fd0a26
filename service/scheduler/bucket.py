"""A token bucket: how many requests a second are let in, and when to come back."""

from __future__ import annotations

from typing import Final

__all__ = ["SharedLimit", "TokenBucket"]

_RESERVED: Final = 0.1
"""Share of the limit that VIPs cannot use up: enough that nobody starves, and little beside what VIPs may need."""


class TokenBucket:
    """Holds one second's worth of requests at most, so that a burst of that size passes.

    Args:
        rate: Requests a second; 0 lets everything pass.
        now: The time in seconds, on the clock of `take`.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._most = max(1.0, rate)
        self._tokens = self._most
        self._at = now

    def take(self, now: float, *, forced: bool = False) -> float:
        """Take a token.

        Args:
            now: The time in seconds.
            forced: Take it even if there is none; others wait the longer, up to one second's worth.

        Returns:
            0 if it was taken, else the seconds until there is one.
        """
        if not self.rate:
            return 0.0
        self._tokens = min(self._most, self._tokens + max(0.0, now - self._at) * self.rate)
        self._at = now
        if forced:
            self._tokens = max(-self._most, self._tokens - 1.0)
            return 0.0
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self.rate


class SharedLimit:
    """A limit for all, of which VIPs, who are never held back, leave a tenth to the others.

    Args:
        rate: Requests a second; 0 lets everything pass.
        now: The time in seconds, on the clock of `take`.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._common = TokenBucket(rate * (1 - _RESERVED), now)
        self._reserved = TokenBucket(rate * _RESERVED, now)

    def take(self, now: float, *, vip: bool) -> float:
        """Let one request in.

        Args:
            now: The time in seconds.
            vip: Whether it is a VIP's.

        Returns:
            0 if it may pass, else the seconds until one may.
        """
        wait = self._common.take(now, forced=vip)
        return min(wait, self._reserved.take(now)) if wait else 0.0
