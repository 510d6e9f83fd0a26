"""A target that is down, told from a Prometheus that was away."""

from __future__ import annotations

import numpy as np

from runbooks.evidence import Series
from runbooks.targets import down_at, down_seconds


def up(job: str, values: dict[float, float]) -> Series:
    """Return the series of `up` of one job."""
    return Series({"job": job}, np.array(list(values)), np.array(list(values.values())))


OTHER = up("prometheus", dict.fromkeys(np.arange(0.0, 60.0, 5.0).tolist(), 1.0))


def test_a_target_is_down_since_its_last_answer() -> None:
    """0 and absent both count, from the first sample without an answer on."""
    zero = up("service", {0.0: 1.0, 5.0: 1.0, 10.0: 0.0, 15.0: 0.0})
    gone = up("service", {0.0: 1.0, 5.0: 1.0})

    assert 45.0 == down_seconds([OTHER, zero], "service", 55.0)
    assert 45.0 == down_seconds([OTHER, gone], "service", 55.0)


def test_one_instance_of_two_that_answers_keeps_the_job_up() -> None:
    """A job is down when none of its targets answers."""
    dead, alive = up("service", {0.0: 1.0, 5.0: 0.0}), up("service", dict.fromkeys(OTHER.times.tolist(), 1.0))

    assert 0.0 == down_seconds([OTHER, dead, alive], "service", 55.0)


def test_a_prometheus_that_was_away_says_nothing() -> None:
    """Times without any sample are no down time; without a recent sample nothing is known."""
    gap = {0.0: 1.0, 5.0: 1.0, 50.0: 1.0, 55.0: 1.0}

    assert 0.0 == down_seconds([up("prometheus", gap), up("service", gap)], "service", 55.0)
    assert down_seconds([up("prometheus", gap), up("service", gap)], "service", 100.0) is None


def test_a_job_that_was_never_seen_is_unknown() -> None:
    """A foreign Prometheus without such a job does not make the service dead."""
    assert down_seconds([OTHER], "service", 55.0) is None
    assert 0 == len(down_at([], "service")[0])


def test_a_job_is_not_down_before_its_first_sample() -> None:
    """A stack that starts part by part: what is not there yet is unknown, not down."""
    times, down = down_at([OTHER, up("service", {30.0: 1.0, 35.0: 1.0})], "service")

    assert 30.0 == times[0]
    assert [0.0, 0.0, 1.0] == down[:3].tolist()
