"""Several takers of rows are one."""

from __future__ import annotations

from typing import Any

from exporters.taps import Taps
from exporters.totals import Totals

NOTHING: Any = None


class Counting:
    """A taker that counts what it is offered."""

    def offer(self, _header: Any, rows: Any, _strings: Any) -> Totals:
        """Count rows."""
        totals = Totals()
        totals.add("telemetry_rows_read_total", (), len(rows))
        return totals

    def offer_unfinished(self, _header: Any, requests: Any, _ended_unix_ns: int) -> Totals:
        """Count requests."""
        totals = Totals()
        totals.add("telemetry_spans_sent_total", (), len(requests))
        return totals


def test_each_taker_gets_all_and_their_counts_add_up() -> None:
    """Two takers, twice the rows; none, none."""
    two, none = Taps([Counting(), Counting()]), Taps([])
    rows: Any = [1, 2, 3]
    assert 6 == two.offer(NOTHING, rows, []).value("telemetry_rows_read_total")
    assert 4 == two.offer_unfinished(NOTHING, rows[:2], 0).value("telemetry_spans_sent_total")
    assert {} == none.offer(NOTHING, rows, []).counters
    assert {} == none.offer_unfinished(NOTHING, rows, 0).counters
