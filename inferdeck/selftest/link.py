"""One link of the chain: looked at with a deadline, timed, and told in one line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Broken", "Link", "LinkAbsent", "Moment", "look"]


class Broken(Exception):  # noqa: N818  # names what the link is
    """Raised when a link does not do its work; says what was seen, and the mend."""

    def __init__(self, detail: str, mend: str) -> None:
        super().__init__(detail)
        self.detail, self.mend = detail, mend


class LinkAbsent(Broken):
    """Raised when a link is not part of what runs here, or cannot be looked at without an earlier one."""


@dataclass(frozen=True)
class Link:
    """What was seen of one link.

    Attributes:
        name: The link.
        state: ok, fail or absent.
        took_s: How long it took, waiting included.
        detail: What was seen.
        mend: What to do about it; empty when it is ok.
    """

    name: str
    state: str
    took_s: float
    detail: str
    mend: str = ""


@dataclass
class Moment:
    """The clocks of a self-test, so that its tests need not wait.

    Attributes:
        tick: Monotonic seconds.
        sleep: Waits so many seconds.
        wall: Unix seconds.
    """

    tick: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wall: Callable[[], float] = time.time

    def wait_for(self, holds: Callable[[], str | None], limit_seconds: float, every_seconds: float = 0.1) -> str | None:
        """Ask until the answer is not None, at least once, and return it; None when time is up.

        Args:
            holds: Returns what was seen, or None for "not yet".
            limit_seconds: How long to ask.
            every_seconds: Pause between two questions.
        """
        deadline = self.tick() + limit_seconds
        while (seen := holds()) is None:
            if self.tick() + every_seconds > deadline:
                return None
            self.sleep(every_seconds)
        return seen


def look(name: str, see: Callable[[], str], tick: Callable[[], float] = time.monotonic) -> Link:
    """Return what is seen of a link; whatever goes wrong is told and does not end the others.

    Args:
        name: The link.
        see: Returns what was seen; raises `Broken` or `LinkAbsent`.
        tick: Monotonic seconds.
    """
    began = tick()
    state, mend = "ok", ""
    try:
        detail = see()
    except LinkAbsent as error:
        state, detail, mend = "absent", error.detail, error.mend
    except Broken as error:
        state, detail, mend = "fail", error.detail, error.mend
    except Exception as error:  # noqa: BLE001  # a link that answers nonsense is a broken link, not the end of the test
        state, detail = "fail", f"it answered what cannot be read: {type(error).__name__}: {str(error)[:200]}"
        mend = f"look at the log of {name}"
    return Link(name, state, round(tick() - began, 3), " ".join(detail.split()), mend)
