"""Triage without a named folder reads the rows of the only service, once there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.lone_folder import SeveralFoldersError
from probes import Recorder, RecorderSettings
from runbooks.prometheus_source import SourceMissingError
from runbooks.sources import LoneRows


def test_rows_are_looked_for_at_each_triage(tmp_path: Path) -> None:
    """The triage service may start first: without a folder rows are missing, and with it they are read."""
    folder = tmp_path / "reviews"
    rows = LoneRows(find_ring_dir=lambda: folder if folder.is_dir() else None)
    with pytest.raises(SourceMissingError):
        rows.collect(0.0, 1e10)
    recorder = Recorder.open(folder, "reviews", settings=RecorderSettings(ring_rows=64, sensors=False))
    intake = recorder.start()
    scope = {"method": "GET", "headers": []}
    intake.finish(intake.begin(scope), scope, 200, False)

    assert 1 == len(rows.collect(0.0, 1e10))
    recorder.close()


def test_several_services_are_a_missing_source_with_the_mend() -> None:
    """The report says what to set."""

    def several() -> Path | None:
        raise SeveralFoldersError("several: set INFERDECK_RING_DIR to one")

    with pytest.raises(SourceMissingError, match="set INFERDECK_RING_DIR"):
        LoneRows(find_ring_dir=several).collect(0.0, 1.0)
