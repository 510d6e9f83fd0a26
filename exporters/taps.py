"""Several takers of the follower's rows as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from exporters.follow import Tap
from exporters.rows import OpenRequest
from exporters.totals import Totals
from probes.reader import Header

__all__ = ["Taps"]


class Taps:
    """Hands the same rows to each taker, in order.

    Args:
        taps: The takers.
    """

    def __init__(self, taps: Sequence[Tap]) -> None:
        self._taps = tuple(taps)

    def offer(self, header: Header, rows: npt.NDArray[Any], strings: Sequence[str]) -> Totals:
        """Hand over new rows; returns what the takers add to the totals."""
        totals = Totals()
        for tap in self._taps:
            totals.merge(tap.offer(header, rows, strings))
        return totals

    def offer_unfinished(self, header: Header, requests: Sequence[OpenRequest], ended_unix_ns: int) -> Totals:
        """Hand over the requests that a dead worker never ended; returns what the takers add to the totals."""
        totals = Totals()
        for tap in self._taps:
            totals.merge(tap.offer_unfinished(header, requests, ended_unix_ns))
        return totals
