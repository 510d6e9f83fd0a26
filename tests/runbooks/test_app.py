"""The triage service as a process, and its settings."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr, ValidationError

from runbooks.app import main
from runbooks.settings import TriageSettings

ROOT = Path(__file__).resolve().parents[2]
BODY = {
    "version": "4",
    "status": "firing",
    "groupKey": "g",
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "EventLoopBlocked"},
            "startsAt": "2026-11-30T08:02:30Z",
            "fingerprint": "f1",
        }
    ],
}


def environment(folder: Path, port: int) -> dict[str, str]:
    """Return an environment in which nothing but the folder is reached."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")},
        "INFERDECK_STATE_DIR": str(folder),
        "INFERDECK_RING_DIR": str(folder / "rings"),
        "INFERDECK_PROMETHEUS_URL": "http://127.0.0.1:9",
        "INFERDECK_TRIAGE_PORT": str(port),
    }


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(env: Mapping[str, str], port: int) -> subprocess.Popen[bytes]:
    """Start the service and wait until it answers."""
    process = subprocess.Popen([sys.executable, "-m", "runbooks"], env=dict(env), cwd=ROOT, stderr=subprocess.PIPE)
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, timeout=1).raise_for_status()
            return process
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(process.communicate(timeout=5)[1].decode())


def test_the_process_takes_an_alert_keeps_a_report_and_ends_on_sigterm(tmp_path: Path) -> None:
    """With neither Prometheus nor rows it still answers, abstains, keeps the report privately and exits 0."""
    port = free_port()
    process = start(environment(tmp_path, port), port)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=5) as client:
            assert 202 == client.post("/webhook", json=BODY).status_code
            until = time.monotonic() + 20
            while not (listed := client.get("/reports").json()["reports"]) and time.monotonic() < until:
                time.sleep(0.1)
            report = client.get(f"/reports/{listed[0]['id']}").json()
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=15)

    assert 0 == process.returncode, errors.decode()
    assert (True, ["prometheus", "ring"]) == (report["abstained"], report["missing_sources"])
    assert report["took_s"] < 15
    assert json.loads((tmp_path / "reports" / f"{report['id']}.json").read_bytes()) == report


def test_a_taken_port_is_one_line_and_exit_2(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Which port, and which setting changes it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert 2 == main({"port": port, "state_dir": tmp_path, "ring_dir": tmp_path})

    assert f"port {port} on 127.0.0.1 cannot be had" in caplog.text
    assert "INFERDECK_TRIAGE_PORT" in caplog.text


def test_a_wrong_setting_is_one_line_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    """The variable and the fault are named, not what was given: it may be a secret."""
    assert 2 == main({"prometheus_url": "ftp://user:hidden@host"})

    assert "INFERDECK_PROMETHEUS_URL" in caplog.text
    assert "hidden" not in caplog.text


def test_an_open_port_without_a_token_is_refused() -> None:
    """Bound to the network, a token is a must; on loopback it is a choice."""
    with pytest.raises(ValidationError, match="INFERDECK_TRIAGE_TOKEN"):
        TriageSettings(host="0.0.0.0")

    assert TriageSettings(host="0.0.0.0", token=SecretStr("t")).port == 9465
    assert TriageSettings(host="::1").loopback


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("INFERDECK_TRIAGE_MAPPING", "fastapi", "no mapping 'fastapi'"),
        ("INFERDECK_TRIAGE_MITIGATE", "restart_everything", "is in no page"),
    ],
)
def test_what_could_not_work_in_the_incident_is_refused_at_the_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    """One line that names the variable."""
    monkeypatch.setenv(variable, value)

    assert 2 == main({"port": 0})
    assert f"cannot start: {variable}: " in caplog.text
    assert said in caplog.text


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are those of the documentation."""
    for name, value in environment(Path("/somewhere"), 1234).items():
        if name.startswith("INFERDECK_"):
            monkeypatch.setenv(name, value)
    settings = TriageSettings()

    assert (Path("/somewhere"), Path("/somewhere/rings"), 1234) == (
        settings.state_dir,
        settings.ring_dir,
        settings.port,
    )
    assert "http://127.0.0.1:9" == settings.prometheus_url
