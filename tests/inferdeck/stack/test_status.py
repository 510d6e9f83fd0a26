"""A stack that was stopped is told from one that died, and whoever stands in a wrong folder hears where was looked."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inferdeck.errors import CannotRun
from inferdeck.schema import validate
from inferdeck.settings import load_settings
from inferdeck.stack.commands import down
from inferdeck.stack.process import start, stop
from inferdeck.stack.state import PartState, StackState, read_state, write_state
from inferdeck.stack.status import describe
from inferdeck.stack.status_view import show_status
from inferdeck.triage_command import run_triage
from inferdeck.verbs.stack import down_line

STAMP = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state folder of its own, without a stack."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("INFERDECK_RING_DIR", str(tmp_path / "rows"))
    monkeypatch.setenv("INFERDECK_PROMETHEUS_URL", "http://127.0.0.1:1")
    return tmp_path / "home"


def shown(payload: dict[str, Any]) -> str:
    """Return what `status` prints."""
    out = io.StringIO()
    show_status(Console(file=out, width=200), payload)
    return out.getvalue()


def ended_stack(home: Path) -> StackState:
    """Return a stack in *home* whose only part spoke and has gone."""
    argv = (sys.executable, "-c", "import time; print('last words', flush=True); time.sleep(30)")
    record, child = start("service", argv, log=home / "logs" / "service.log")
    stop(record, grace_seconds=5, reap=child.poll)
    (home / "logs" / "service.log").write_text("last words\n")
    part = PartState("service", 1, "http://127.0.0.1:1", "http://127.0.0.1:1", record=record)
    return StackState(str(home), str(home / "rows"), 12.5, phase="ready", parts=[part])


def test_after_down_each_part_is_stopped_and_silent(home: Path) -> None:
    """The same stack without `down` is dead, with its last words."""
    state = ended_stack(home)
    write_state(state)
    died = describe(state, home)

    down(load_settings(), purge=False)
    stopped = describe(read_state(home), home)

    assert ["dead"] == [part["health"] for part in died["parts"]]
    assert "last words" in shown(died)
    assert ["stopped"] == [part["health"] for part in stopped["parts"]]
    assert "last words" not in shown(stopped)
    assert "dead" not in shown(stopped)
    validate("status", STAMP | stopped)


def test_a_purge_tells_what_it_leaves(home: Path) -> None:
    """Bundles and drills stay, and are named."""
    write_state(ended_stack(home))
    for name in ("bundles", "drills"):
        (home / name).mkdir()

    payload = down(load_settings(), purge=True)

    validate("down", STAMP | payload)
    assert [str(home / "bundles"), str(home / "drills")] == payload["kept"]
    assert f"kept: {home / 'bundles'}, {home / 'drills'}" in down_line(payload)
    assert (home / "bundles").is_dir()


def test_a_wrong_folder_is_named_by_each_verb(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`status`, `down` and `triage` say where they looked, and what points them elsewhere."""
    told = [
        shown(describe(None, home)),
        down_line(down(load_settings(), purge=False)),
    ]
    run_triage(load_settings(), alert=None, payload=None, at=None)
    told.append(capsys.readouterr().err)

    for line in told:
        assert str(home) in line
        assert "INFERDECK_STATE_DIR" in line


@pytest.mark.usefixtures("home")
def test_triage_writes_its_answer_as_a_page_or_says_why_not(tmp_path: Path) -> None:
    """Readable by its owner alone; a folder that is not there is told before anything is lost."""
    page = tmp_path / "report.html"
    run_triage(load_settings(), alert=None, payload=None, at=None, page=page)

    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert 0o600 == stat.S_IMODE(page.stat().st_mode)
    with pytest.raises(CannotRun, match="cannot write"):
        run_triage(load_settings(), alert=None, payload=None, at=None, page=tmp_path / "none" / "report.html")
