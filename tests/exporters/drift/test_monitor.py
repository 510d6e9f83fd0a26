from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.drift import monitor as module
from exporters.drift.judge import Rules
from exporters.drift.monitor import DriftMonitor

# not looked at
HEADER: Any = None
STRINGS = ["", "en", "zh", "fr"]
DTYPE = np.dtype(
    [("outcome", "u1"), ("input_length", "<i8"), ("confidence", "<f8"), ("sentiment.preprocess/language", "<u4")]
)


def rows(lengths: Any, confidence: float = 0.5, language: int = 1, outcome: int = 0) -> Any:
    """Rows with these lengths."""
    made = np.zeros(len(lengths), dtype=DTYPE)
    made["outcome"], made["input_length"], made["confidence"] = outcome, lengths, confidence
    made["sentiment.preprocess/language"] = language
    return made


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A training of uniform lengths."""
    path = tmp_path / "reference.npz"
    write(path, np.arange(1000.0))
    return path


def write(path: Path, lengths: Any) -> None:
    """Write a reference of three features."""
    np.savez(
        path,
        **{
            "number:input_length": lengths,
            "number:confidence": np.linspace(0.3, 1, 500),
            "words:sentiment.preprocess/language": np.array(["en", "zh"]),
            "counts:sentiment.preprocess/language": np.array([500, 500]),
        },
    )


class Clock:
    """Ten seconds later each time."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        self.now += 10.0
        return self.now


def monitor(path: Path, **options: Any) -> DriftMonitor:
    """A monitor of a window of 400."""
    return DriftMonitor(path, window=400, rules=Rules(**{"rows": 100, **options}), clock=Clock())


def told_by(drift: DriftMonitor) -> dict[str, Any]:
    """What services are told, which is something by now."""
    found = drift.control()
    assert found is not None
    return dict(found)


def run(drift: DriftMonitor, batches: list[Any]) -> dict[str, str]:
    """Offer batches with a look after each; the states at the end."""
    for batch in batches:
        drift.offer(HEADER, batch, STRINGS)
        drift.look()
    return {name: one.state for name, one in drift.found.items()}


def healthy(seed: int) -> Any:
    """Rows of 200 requests as in the training."""
    rng = np.random.default_rng(seed)
    made = rows(rng.integers(0, 1000, 200))
    made["confidence"] = rng.uniform(0.3, 1, 200)
    made["sentiment.preprocess/language"] = rng.integers(1, 3, 200)
    return made


def test_requests_like_the_training_do_not_drift(reference: Any) -> None:
    """Fifty windows of them, each feature the same, and a weight of 1."""
    drift = monitor(reference)
    for seed in range(50):
        assert {"same"} == set(run(drift, [healthy(seed)]).values())
    assert 1.0 == told_by(drift)["weight"]
    assert {0.0} == set(drift.gauges()["data_drift_state"].values())


def test_a_client_that_sends_other_inputs_drifts_and_lowers_the_weight(reference: Any) -> None:
    """Only the feature that changed, after some looks; the score is that of the window."""
    drift = monitor(reference)
    run(drift, [healthy(1), healthy(2)])
    changed = [healthy(seed) for seed in range(5)]
    for batch in changed:
        batch["input_length"] = 10
    assert {"input_length": "drift", "confidence": "same", "language": "same"} == run(drift, changed)
    told = told_by(drift)
    assert ("input_length", pytest.approx(0.989, abs=1e-3)) == (told["feature"], told["score"])
    assert told["weight"] == pytest.approx(1 - told["score"])
    assert told["score"] == pytest.approx(drift.gauges()["data_drift_score"]["input_length",], abs=1e-6)
    run(drift, [healthy(seed) for seed in range(6)])
    assert 1.0 == told_by(drift)["weight"]


def test_a_language_that_was_never_trained_drifts(reference: Any) -> None:
    """By Cramer's V."""
    drift = monitor(reference)
    changed = [healthy(seed) for seed in range(5)]
    for batch in changed:
        batch["sentiment.preprocess/language"] = 3
    assert "drift" == run(drift, changed)["language"]


def test_too_few_requests_have_no_score(reference: Any) -> None:
    """Absent, not 0; how many there are is told."""
    drift = monitor(reference)
    run(drift, [rows([5] * 99)])
    gauges = drift.gauges()
    assert {"data_drift_up", "data_drift_window_rows"} == set(gauges)
    assert (1.0, 99.0) == (gauges["data_drift_up"][()], gauges["data_drift_window_rows"]["input_length",])
    assert drift.control() is None


def test_looks_without_new_requests_do_not_add_up_to_a_drift(reference: Any) -> None:
    """The same window looked at again is no further evidence."""
    drift = monitor(reference)
    states = run(drift, [rows([5] * 200), *[rows([])] * 10])
    assert "suspected" == states["input_length"]


def test_refused_requests_and_absent_values_are_left_out(reference: Any) -> None:
    """Outcome 1 is refused; -1 and NaN are absent."""
    drift = monitor(reference)
    run(drift, [rows([5] * 150, outcome=1), rows([-1] * 150, confidence=float("nan"), language=0)])
    assert {0.0} == set(drift.gauges()["data_drift_window_rows"].values())


def test_rows_without_a_column_tell_nothing_of_it(reference: Any) -> None:
    """A service of another kind has other stages."""
    drift = monitor(reference)
    bare = np.zeros(300, dtype=[("outcome", "u1"), ("input_length", "<i8")])
    run(drift, [bare])
    assert 0.0 == drift.gauges()["data_drift_window_rows"]["language",]


def test_without_a_reference_there_is_no_score_until_one_comes(tmp_path: Path) -> None:
    """A training that ends later is noticed."""
    drift = monitor(tmp_path / "reference.npz")
    run(drift, [healthy(1)])
    assert {"data_drift_up": {(): 0.0}} == drift.gauges()
    assert "inferdeck train" in drift.note
    write(tmp_path / "reference.npz", np.arange(1000.0))
    run(drift, [healthy(1), healthy(1)])
    assert 1.0 == drift.gauges()["data_drift_up"][()]
    assert "data_drift_score" in drift.gauges()


def test_a_new_training_begins_new_windows(reference: Any) -> None:
    """What was seen is compared with the new model's reference only from now on."""
    drift = monitor(reference)
    run(drift, [healthy(1)])
    write(reference, np.arange(10.0))
    run(drift, [rows([])])
    assert {0.0} == set(drift.gauges()["data_drift_window_rows"].values())


@pytest.mark.parametrize("body", [b"", b"damaged"])
def test_a_damaged_reference_is_said_once_and_costs_only_the_drift(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    """The exporter goes on."""
    path = tmp_path / "reference.npz"
    path.write_bytes(body)
    drift = monitor(path)
    run(drift, [healthy(1)] * 3)
    assert {"data_drift_up": {(): 0.0}} == drift.gauges()
    assert 1 == len(caplog.records)


def test_a_reference_that_breaks_its_reader_drops_the_features_of_the_one_before(
    reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is raised: nothing is compared with a model that is gone, and the exporter goes on."""
    drift = monitor(reference)

    def broken(_path: Path) -> Any:
        raise MemoryError("by hand")

    monkeypatch.setattr(module, "load_reference", broken)
    write(reference, np.arange(10.0))
    run(drift, [healthy(1)])
    assert {"data_drift_up": {(): 0.0}} == drift.gauges()
    assert "off: by hand" == drift.note


def test_memory_does_not_grow(reference: Any) -> None:
    """However many rows come."""
    drift = monitor(reference)
    before = drift.nbytes
    run(drift, [healthy(seed) for seed in range(100)])
    assert before == drift.nbytes
