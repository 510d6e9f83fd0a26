"""What simpler methods name, on the same recorded data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import RobustScaler, StandardScaler

from inferdeck.drill import baselines
from inferdeck.drill.baselines import Recorded, baseline_verdicts, first_alert, ranked, read_series
from inferdeck.drill.score import Fault, Judgement, confusion, scores, wilson

BEGIN = 1000.0


def recorded(name: str, before: Any, since: Any, **labels: str) -> Recorded:
    """Return a series with a sample each 5 s."""
    values = np.array([*before, *since], dtype=np.float64)
    times = np.arange(len(values), dtype=np.float64) * 5.0 + (BEGIN - 5.0 * len(before))
    return Recorded({"__name__": name, **labels}, times, values)


@pytest.mark.parametrize("seed", range(5))
def test_the_distances_are_those_of_the_scalers_that_the_methods_are_published_with(seed: int) -> None:
    """BARO's RobustScorer and n-sigma as RCAEval computes them: fitted before, the largest since."""
    rng = np.random.default_rng(seed)
    before, since = rng.normal(3.0, 2.0, 40), rng.normal(5.0, 4.0, 20)
    for scaler, ours in ((RobustScaler(), baselines._robust), (StandardScaler(), baselines._deviations)):
        theirs = scaler.fit(before.reshape(-1, 1)).transform(since.reshape(-1, 1)).max()
        assert ours(before, since) == pytest.approx(theirs)
        flat = scaler.fit(np.full((9, 1), 2.0)).transform(np.array([[7.0]])).max()
        assert ours(np.full(9, 2.0), np.array([7.0])) == pytest.approx(flat)


def test_series_are_ranked_by_how_far_they_went_and_those_that_fell_or_are_too_short_are_not() -> None:
    """Not a number is no sample."""
    wobble = [1.0, 1.2, 0.9, 1.1, float("nan")]
    far, near = recorded("far", wobble, [9.0, 9.0]), recorded("near", wobble, [2.0])
    fell, short = recorded("fell", wobble, [0.1]), recorded("short", [1.0, 2.0], [99.0])

    assert [far, near] == ranked([near, short, fell, far], BEGIN, baselines._deviations)


def test_what_is_far_is_named_by_the_rule_that_reads_it_most_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A series that no rule reads is passed over; both methods may differ."""
    quiet = [1.0, 1.1, 0.9, 1.0, 1.05]
    series = [
        recorded("model_unread_by_anybody", quiet, [1e6]),
        recorded("runtime_standing_threads", [0, 0, 0, 0, 0], [4.0], waits="lock"),
        recorded("model_requests_in_flight", quiet, [1.2]),
    ]
    monkeypatch.setattr(baselines, "read_series", lambda *_args: series)
    found = baseline_verdicts("http://unused", BEGIN, BEGIN + 60.0, [])

    assert {"largest_z": "worker_deadlock", "first_alert": None, "baro": "worker_deadlock"} == found


def test_nothing_recorded_names_nothing() -> None:
    """Prometheus may be the one that is gone."""
    found = baseline_verdicts("http://127.0.0.1:1", BEGIN, BEGIN + 60.0, [])

    assert {"largest_z": None, "first_alert": None, "baro": None} == found


def test_counters_are_read_as_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart counts as growth from 0; a gauge stays as it is."""
    values = [[100.0, "10"], [105.0, "20"], [110.0, "5"]]
    answer = {
        "data": {
            "result": [
                {"metric": {"__name__": "model_rows_total"}, "values": values},
                {"metric": {"__name__": "up"}, "values": values},
            ]
        }
    }
    monkeypatch.setattr(baselines, "get_json", lambda *_args: answer)
    counter, gauge = read_series("http://unused", 0.0, 120.0)

    assert [2.0, 1.0] == counter.values.tolist()
    assert [10.0, 20.0, 5.0] == gauge.values.tolist()


def event(slug: str, kind: str, at: float, state: str = "firing") -> dict[str, Any]:
    """Return an entry of a timeline."""
    return {"at_unix": at, "state": state, "labels": {"slug": slug, "kind": kind}, "alertname": slug}


@pytest.mark.parametrize(
    ("timeline", "expected"),
    [
        ([event("watchdog", "meta", 1001.0), event("disk_full", "failure", 1002.0)], "disk_full"),
        ([event("slow_start", "failure", 900.0), event("disk_full", "failure", 1002.0)], "disk_full"),
        ([event("slow_start", "failure", 1001.0, "pending")], None),
        ([event("request_stuck", "symptom", 1001.0), event("disk_full", "failure", 1002.0)], "worker_deadlock"),
        ([], None),
    ],
)
def test_the_first_alert_names_itself_and_a_symptom_its_first_candidate(timeline: Any, expected: str | None) -> None:
    """What fired before the cause, or only waits to fire, is not it."""
    assert expected == first_alert(timeline, BEGIN)


def fault(slug: str, verdict: str | None, layer: str, **simpler: str | None) -> Fault:
    """Return a run of a failure of the layer runtime."""
    told = Judgement(verdict, layer, 0.9, 1, abstained=verdict is None)
    return Fault(slug, "runtime", False, 1, "A", 1.0, 2.0, told, told, baselines=simpler)


def test_scores_tell_what_simpler_methods_reach_and_which_layers_were_confused() -> None:
    """Only runs of which a method's data was recorded are its own; simulated ones are scored apart."""
    runs = [
        fault("a", "a", "runtime", largest_z="a", first_alert=None),
        fault("a", "b", "model", largest_z="b", first_alert="a"),
        fault("a", None, "", largest_z="b"),
        fault("a", "a", "runtime"),
    ]
    told = scores(runs)

    assert {"largest_z": pytest.approx(1 / 3, abs=1e-3), "first_alert": 0.5, "baro": None} == told["baselines"]
    assert {"runtime": {"abstained": 1, "model": 1, "runtime": 2}} == confusion(runs) == told["layers"]


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0)]
)
def test_the_interval_is_wilsons(hits: int, runs: int, low: float, high: float) -> None:
    """Values of a published table (Newcombe 1998, method 3)."""
    assert wilson(hits, runs) == pytest.approx([low, high], abs=1e-3)
    assert wilson(0, 0) is None
