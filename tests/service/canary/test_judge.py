"""When a canary is taken back: least numbers, limits, and looks in a row."""

from __future__ import annotations

from service.canary.judge import CanaryJudge, CanaryRules, Verdict


class Clock:
    """Seconds that stand until told."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def fed(*, stable: float = 0.004, canary: float = 0.004, failed: int = 0, flipped: int = 0, n: int = 60) -> CanaryJudge:
    """Return a judge that has seen n requests of each version."""
    judge = CanaryJudge(CanaryRules(), Clock())
    for i in range(n):
        judge.answered("stable", stable)
        if i < failed:
            judge.failed("canary")
        else:
            judge.answered("canary", canary)
        judge.compared(flipped=i < flipped)
    return judge


def looked(judge: CanaryJudge, times: int = 3) -> Verdict | None:
    """Return what the last of some looks said; the ones before must have been patient."""
    for _ in range(times - 1):
        assert judge.look() is None
    return judge.look()


def test_an_equal_canary_stays() -> None:
    """No look ever says otherwise."""
    judge = fed()
    assert [None] * 20 == [judge.look() for _ in range(20)]


def test_failures_take_it_back_at_the_third_look() -> None:
    """Four of sixty are above five percent."""
    verdict = looked(fed(failed=4))
    assert verdict is not None
    assert verdict.reason == "errors"


def test_failures_of_both_versions_are_no_fault_of_the_canary() -> None:
    """What hits all alike is not cured by taking it back."""
    judge = fed(failed=4)
    for _ in range(6):
        judge.failed("stable")
    assert [None] * 5 == [judge.look() for _ in range(5)]


def test_just_below_every_limit_it_stays() -> None:
    """Three failures, six flips, and 1.49 times the time."""
    judge = fed(failed=3, flipped=6, canary=0.00596)
    assert [None] * 5 == [judge.look() for _ in range(5)]


def test_a_slow_canary_is_taken_back_and_a_thousandth_of_a_second_is_not_slow() -> None:
    """The ratio alone says nothing where both take no time."""
    verdict = looked(fed(stable=0.004, canary=0.012))
    assert verdict is not None
    assert verdict.reason == "latency"
    assert [None] * 5 == [fed(stable=0.0002, canary=0.0012).look() for _ in range(5)]


def test_flips_take_it_back() -> None:
    """Seven of sixty compared answers."""
    verdict = looked(fed(flipped=7))
    assert verdict is not None
    assert verdict.reason == "flips"


def test_few_requests_are_not_judged() -> None:
    """Twenty that all fail, flip and are slow may be chance."""
    judge = fed(n=20, failed=20, flipped=20)
    assert [None] * 5 == [judge.look() for _ in range(5)]


def test_what_is_older_than_the_window_is_forgotten() -> None:
    """A canary that was mended is judged by what it does since."""
    clock = Clock()
    judge = CanaryJudge(CanaryRules(), clock)
    for _ in range(60):
        judge.failed("canary")
    clock.now = 400.0
    assert [None] * 5 == [judge.look() for _ in range(5)]


def test_a_good_look_in_between_starts_the_count_anew() -> None:
    """Two bad looks, a reset, and two bad ones are no three in a row."""
    judge = fed(failed=10)
    assert [None, None] == [judge.look(), judge.look()]
    for _ in range(300):
        judge.answered("canary", 0.004)
    assert judge.look() is None
    for _ in range(30):
        judge.failed("canary")
    assert [None, None] == [judge.look(), judge.look()]
    assert judge.look() is not None
