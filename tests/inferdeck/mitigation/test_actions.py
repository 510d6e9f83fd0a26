"""What the mitigations do to files and processes: only what nobody misses goes, only our own parts are restarted."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from inferdeck.mitigation.actions import ACTION_IDS, drop_leftovers, prune_archive, restart, stack_actions
from inferdeck.settings import load_settings
from inferdeck.stack.process import ProcessRecord, kernel_start_ticks, start, stop
from inferdeck.stack.state import PartState, StackState, write_state
from runbooks.mitigation.action import ActionFailedError
from runbooks.mitigation.settings import known_ids
from runbooks.pages import load_pages


def test_each_id_of_a_page_is_known_to_the_stack_and_the_other_way_round() -> None:
    """One name for one thing: no page promises what the stack cannot do."""
    assert set(known_ids(load_pages().values())) == set(stack_actions(load_settings())) == set(ACTION_IDS)


def test_what_destroys_rows_is_never_safe() -> None:
    """Rows that are deleted are gone: that is left to a person."""
    assert not known_ids(load_pages().values())["prune_archive"]


def test_only_leftovers_are_dropped(tmp_path: Path) -> None:
    """Rotated logs and old half-written files go; young ones, logs, and whatever else lies there stays."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "reports").mkdir()
    old = tmp_path / "reports" / f".x.json.{'a' * 16}"
    young = tmp_path / f".exporter.state.{'b' * 16}"
    others = [tmp_path / ".hidden", tmp_path / "logs" / "service.log", tmp_path / "thesis.log.1"]
    for path in (old, young, *others, tmp_path / "logs" / "service.log.1"):
        path.write_bytes(bytes(8192))
    os.utime(old, (1, 1))

    done = drop_leftovers(tmp_path)

    assert "2 leftovers deleted" in done.detail
    assert sorted([young, *others]) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(ActionFailedError, match="nothing was deleted"):
        drop_leftovers(tmp_path)


def test_the_older_half_of_the_archive_is_pruned(tmp_path: Path) -> None:
    """By bytes, oldest first; the newest rows stay, and so do files that are no segments."""
    names = [f"{number:019d}-{number + 1:019d}-{number:08x}.npz" for number in range(1, 5)]
    for name in names:
        (tmp_path / name).write_bytes(bytes(1000))
    (tmp_path / "keys.json").write_text("{}")

    done = prune_archive(tmp_path)

    assert "2 of 4 archived segments deleted, 2000 of 4000 bytes freed" == done.detail
    assert names[2:] == sorted(path.name for path in tmp_path.glob("*.npz"))
    assert (tmp_path / "keys.json").exists()


def test_an_archive_that_is_not_there_is_said(tmp_path: Path) -> None:
    """Nothing is made, nothing is deleted."""
    with pytest.raises(ActionFailedError, match="no archive"):
        prune_archive(tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


def test_without_a_supervised_stack_nothing_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an empty folder, nor a stack whose supervisor has gone: a part of that would not be started again."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    with pytest.raises(ActionFailedError, match="no supervised stack"):
        restart(load_settings(), "service")
    gone = ProcessRecord("supervisor", 2**22 - 1, 1, "t", (), "", 0.0)
    write_state(StackState(str(tmp_path), str(tmp_path), time.time(), phase="ready", supervisor=gone))

    with pytest.raises(ActionFailedError, match="no supervised stack"):
        restart(load_settings(), "service")


def test_a_supervisor_that_does_not_start_the_part_again_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old process is ended, the supervisor told; when nothing comes back that is a failure and no success."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("INFERDECK_STACK_READY_TIMEOUT_SECONDS", "1")
    code = "import signal, time; signal.signal(signal.SIGHUP, lambda *_: None); print('up', flush=True); time.sleep(60)"
    log = tmp_path / "log"
    supervisor, boss = start("supervisor", (sys.executable, "-c", code), log=log)
    record, child = start("service", (sys.executable, "-c", "import time; time.sleep(60)"), log=tmp_path / "other")
    try:
        part = PartState("service", 1, "http://127.0.0.1:1", "http://127.0.0.1:1", record)
        write_state(StackState(str(tmp_path), str(tmp_path), 0.0, phase="ready", supervisor=supervisor, parts=[part]))
        deadline = time.monotonic() + 20
        while "up" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)

        with pytest.raises(ActionFailedError, match="service did not come back in time"):
            restart(load_settings(), "service")

        assert -signal.SIGTERM == child.wait(10)
        assert kernel_start_ticks(supervisor.pid) == supervisor.start_ticks
    finally:
        for one, process in ((supervisor, boss), (record, child)):
            stop(one, grace_seconds=2.0, reap=process.poll)
            process.wait(5)
