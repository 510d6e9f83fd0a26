from __future__ import annotations

import json
from typing import Any

from probes.blockers import Blockers


def episode(start: int, *stack: str) -> dict[str, Any]:
    """Return a blocked time of 100 ns."""
    return {"start_unix_ns": start, "duration_ns": 100, "stack": list(stack)}


def test_blocked_times_are_summed_by_what_blocked() -> None:
    """Count, seconds, first and last time; a loop found at another of its lines is the same."""
    blockers = Blockers()
    for one in (episode(1000, "/a.py:3 f"), episode(9000), episode(5000, "/a.py:4 f")):
        blockers.add(one)

    expected = {"stack": ["/a.py:3 f"], "count": 2, "total_ns": 200, "first_unix_ns": 1000, "last_unix_ns": 5100}
    assert [expected] == [one for one in blockers.reading() if one["stack"]]
    assert [1] == [one["count"] for one in blockers.reading() if not one["stack"]]


def test_the_sums_are_bounded_and_lose_no_time() -> None:
    """16 at most; what is beyond is counted without a stack."""
    blockers = Blockers()
    for number in range(100):
        blockers.add(episode(number, f"/a.py:1 f{number}"))

    assert 16 == len(blockers.reading())
    assert 100 == sum(one["count"] for one in blockers.reading())


def test_the_sums_fit_half_a_status_page_whatever_the_names() -> None:
    """Names outside of ASCII take six bytes a character there: the innermost lines are kept."""
    blockers = Blockers()
    for number in range(100):
        blockers.add(episode(number, *(f"/ä{'ö' * 180}.py:{line} f{number}" for line in range(12))))

    assert len(json.dumps(blockers.reading())) < 36_000
    assert "py:0 f" in blockers.reading()[-1]["stack"][0]
