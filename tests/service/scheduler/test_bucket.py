"""How many are let in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.bucket import SharedLimit, TokenBucket


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


def test_vips_in_any_number_leave_a_tenth_to_the_others() -> None:
    """A thousand VIPs a second pass, and of 100 a second 10 are left for those who wait their turn."""
    limit, passed = SharedLimit(100.0, 0.0), 0
    for tick in range(10_000):
        now = tick / 1000
        assert limit.take(now, vip=True) == 0.0
        passed += limit.take(now, vip=False) == 0.0

    # Ten seconds at ten a second, and their half of the second's worth that was there at the start.
    assert 100 <= passed <= 160


def test_without_vips_the_whole_limit_is_everybodys() -> None:
    """The part that is kept from VIPs is no loss to the others."""
    limit = SharedLimit(100.0, 0.0)
    passed = sum(limit.take(tick / 1000, vip=False) == 0.0 for tick in range(10_000))

    assert 1000 <= passed <= 1100


def test_who_is_held_back_is_told_the_shorter_wait() -> None:
    """One token comes after a ninetieth of a second, or from what is kept after a tenth."""
    limit = SharedLimit(100.0, 0.0)
    while not (wait := limit.take(0.0, vip=False)):
        pass

    assert 0 < wait <= 1 / 90 + 1e-9
