"""`inferdeck stream` runs a stream and shows its windows; where none answers that is said."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from inferdeck.dead_letters import list_letters
from inferdeck.errors import CannotRun
from inferdeck.result import Stopwatch
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from inferdeck.stack.ports import free_ports
from inferdeck.stream_windows import show_windows
from tests.service.stream._queries import raw, write_lines
from tests.service.stream.test_app import ROOT, ask, until


def test_windows_of_a_running_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by the verb; what it shows fits the schema, and its dead letters are those of `deadletters`."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (port,) = free_ports(1)
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", [raw(number, time.time() - 300) for number in range(3)] + [b"no"])
    argv = [sys.executable, "-m", "inferdeck", "stream", "run", "--folder", str(tmp_path / "in"), "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        one = subprocess.Popen(argv, cwd=tmp_path, stdout=log, stderr=log)
    try:
        until(lambda: bool(((ask(port, "/api/windows") or {}).get("windows") or [{}])[0].get("revision")))
        url = f"http://127.0.0.1:{port}"
        outcome = show_windows(load_settings(), 5, url)
        letters = list_letters(load_settings(), 5)
    finally:
        one.send_signal(signal.SIGTERM)
        assert 0 == one.wait(60)
    console = Console(record=True, width=150)
    assert outcome.show is not None
    outcome.show(console)

    validate("stream_windows", json.loads(json.dumps(Stopwatch().stamp(outcome.payload))))
    validate("deadletters", json.loads(json.dumps(Stopwatch().stamp(letters.payload))))
    assert ([3], 0) == ([window["messages"] for window in outcome.payload["windows"]], outcome.code)
    assert "all is read" in console.export_text()
    assert ["not_json"] == [letter["reason"] for letter in letters.payload["letters"]]


def test_no_stream_is_said() -> None:
    """With how to start one."""
    (port,) = free_ports(1)
    with pytest.raises(CannotRun, match="no stream answers"):
        show_windows(load_settings(), 5, f"http://127.0.0.1:{port}")
