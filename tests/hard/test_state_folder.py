from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.hard.conftest import ROOT, free_port


def test_an_exporter_that_could_not_save_its_state_says_so_at_its_end(tmp_path: Path) -> None:
    """Who reads the log must know that the totals of this run are gone; counting went on all the while."""
    (tmp_path / "state" / "exporter.state").mkdir(parents=True)
    port = free_port()
    told = {
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
        "INFERDECK_STATE_DIR": str(tmp_path / "state"),
        "INFERDECK_EXPORTER_PORT": str(port),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "exporters"], cwd=ROOT, env={**os.environ, **told}, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 20
        status = 0
        while status != 200 and time.monotonic() < until and process.poll() is None:
            try:
                status = httpx.get(f"http://127.0.0.1:{port}/healthz").status_code
            except httpx.TransportError:
                time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)

    assert 200 == status
    assert 0 == process.returncode
    assert log.rstrip().endswith("stopped, state not saved")
    assert "Traceback" not in log


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_model_that_may_not_be_read_is_not_mended_by_training(tmp_path: Path) -> None:
    """The mend of a right is a right."""
    from service.artifacts import ArtifactsDamaged, load_artifacts

    (tmp_path / "config.json").touch(mode=0o000)

    with pytest.raises(ArtifactsDamaged, match="let this user read it, or set INFERDECK_SERVICE_MODEL_DIR"):
        load_artifacts(tmp_path)


NONSENSE = {
    "exporters": {
        "INFERDECK_EXPORTER_PORT": "abc",
        "INFERDECK_EXPORTER_TICK_SECONDS": "nan",
        "INFERDECK_EXPORTER_HOST": "0.0.0.0",
        "INFERDECK_EXPORTER_KEEP_SLOW_SECONDS": "{",
        "INFERDECK_EXPORTER_OTLP_ENDPOINT": "ftp://x",
        "INFERDECK_STATE_DIR": "/proc/nope",
    },
    "runbooks": {
        "INFERDECK_TRIAGE_PORT": "abc",
        "INFERDECK_TRIAGE_MOST_REPORTS": "-1",
        "INFERDECK_PROMETHEUS_URL": "ftp://x",
    },
    "service": {
        "INFERDECK_SERVICE_PORT": "abc",
        "INFERDECK_SERVICE_HOST": "host.invalid",
        "INFERDECK_SERVICE_ADMIN_HOST": "192.0.2.1",
        "INFERDECK_SERVICE_DEADLINE_SECONDS": "nan",
        "INFERDECK_SERVICE_MIDDLEWARE": "/nope.py:f",
        "INFERDECK_PROFILE": "../etc",
    },
}
CASES = [(part, name, value) for part, settings in NONSENSE.items() for name, value in settings.items()]


@pytest.mark.parametrize(("part", "name", "value"), CASES)
def test_nonsense_in_a_setting_is_one_line_that_names_it(part: str, name: str, value: str, tmp_path: Path) -> None:
    """Exit 2, no traceback, nothing started, and the variable to be mended is in the line."""
    folders = {"INFERDECK_RING_DIR": str(tmp_path / "rings"), "INFERDECK_STATE_DIR": str(tmp_path / "state")}
    ports = {f"INFERDECK_{one}_PORT": str(free_port()) for one in ("EXPORTER", "TRIAGE", "SERVICE", "SERVICE_ADMIN")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", part],
        env={**os.environ, "PYTHONPATH": str(ROOT), **folders, **ports, name: value},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert 2 == done.returncode, done.stderr
    assert 1 == len(done.stderr.splitlines())
    # What is judged together, or never gets to be read as one field, is told by its value or its kind.
    assert any(word in done.stderr for word in (name, value, "INFERDECK_EXPORTER_*"))
