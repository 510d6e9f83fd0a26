"""How many are let in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.bucket import TokenBucket


def test_second_of_requests_passes_and_then_one_by_one() -> None:
    """After the burst each needs its share of a second, and is told how long that is."""
    bucket = TokenBucket(4.0, 0.0)
    assert [bucket.take(0.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.25]
    assert bucket.take(0.125) == pytest.approx(0.125)
    assert bucket.take(0.25) == 0.0


def test_rate_of_nothing_lets_all_pass() -> None:
    """Without a measured knee there is no limit."""
    bucket = TokenBucket(0.0, 0.0)
    assert {bucket.take(0.0) for _ in range(1000)} == {0.0}


def test_forced_tokens_delay_the_others_by_a_second_at_most() -> None:
    """VIPs pass, and what they took the others miss, within a bound."""
    bucket = TokenBucket(10.0, 0.0)
    assert {bucket.take(0.0, forced=True) for _ in range(1000)} == {0.0}
    assert bucket.take(0.0) == pytest.approx(1.1)


@given(st.lists(st.floats(0, 0.5), max_size=200), st.floats(0.5, 50))
def test_never_more_than_the_rate_and_a_second_of_burst(gaps: list[float], rate: float) -> None:
    """Over any time the number that passes is bounded, whatever the arrivals, and clocks that stand still are fine."""
    bucket, now, passed = TokenBucket(rate, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        wait = bucket.take(now)
        assert wait >= 0
        passed += not wait
    assert passed <= now * rate + max(1.0, rate) + 1e-6
