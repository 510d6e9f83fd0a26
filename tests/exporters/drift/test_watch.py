from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.drift.watch import REFERENCE_NAME, DriftWatch
from exporters.settings import ExporterSettings
from probes.control import read_control
from service.artifacts import REFERENCE_FILE

# not looked at
HEADER: Any = None
DTYPE = [("outcome", "u1"), ("tokens", "<i8")]


def settings(tmp_path: Path, **options: Any) -> ExporterSettings:
    """Settings with a reference of 100 numbers."""
    members: dict[str, Any] = {"number:tokens": np.arange(100.0)}
    np.savez(tmp_path / REFERENCE_NAME, **members)
    return ExporterSettings(model_dir=tmp_path, drift_rows=10, drift_seconds=1, **options)


def test_the_file_has_one_name() -> None:
    """Written by the training, read by the exporter."""
    assert REFERENCE_NAME == REFERENCE_FILE


def test_services_are_told_by_the_control_page(tmp_path: Path) -> None:
    """Score, feature and weight; neutral after the page has expired."""
    times = iter([0.0, 2.0, 4.0, 6.0, 8.0])
    watch = DriftWatch(settings(tmp_path), lambda: next(times))
    rows = np.zeros(50, dtype=DTYPE)
    rows["tokens"] = 1000
    for _ in range(4):
        watch.taps[0].offer(HEADER, rows, [""])
        watch.look(tmp_path)
    page = read_control(tmp_path)
    assert {"feature": "tokens", "score": 1.0, "weight": 0.0} == page["drift"]
    assert 6.0 == pytest.approx((page["expires_unix_ns"] - page["written_unix_ns"]) / 1e9)


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The score stays on the metrics."""
    watch = DriftWatch(settings(tmp_path), iter(range(0, 100, 2)).__next__)
    (tmp_path / "rows" / "control").mkdir(parents=True)
    rows = np.zeros(50, dtype=DTYPE)
    for _ in range(3):
        watch.taps[0].offer(HEADER, rows, [""])
        watch.look(tmp_path / "rows")
    assert 1 == sum("not told" in record.message for record in caplog.records)
    assert "data_drift_score" in watch.gauges()


def test_switched_off_it_takes_and_shows_nothing(tmp_path: Path) -> None:
    """`INFERDECK_EXPORTER_DRIFT=false`."""
    watch = DriftWatch(settings(tmp_path, drift=False), lambda: 0.0)
    watch.look(tmp_path)
    assert ([], {}, "off") == (watch.taps, watch.gauges(), watch.note)
    assert {} == read_control(tmp_path)


def test_what_the_running_service_was_trained_on_goes_before_the_folder_of_models(tmp_path: Path) -> None:
    """An exporter in another container sees only the rows' folder; when the file goes, the model's counts again."""
    rows = tmp_path / "rows"
    rows.mkdir()
    np.savez(rows / REFERENCE_NAME, **{"number:tokens": np.arange(100.0), "number:confidence": np.arange(100.0)})  # type: ignore[arg-type]
    watch = DriftWatch(settings(tmp_path), iter(range(0, 100, 2)).__next__)
    watch.look(rows)
    assert "on, 2 features" == watch.note

    (rows / REFERENCE_NAME).unlink()
    watch.look(rows)
    assert "on, 1 features" == watch.note
