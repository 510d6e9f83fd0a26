"""What a dead server leaves behind is ended by its recorded pid, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from service.triton.server import end_orphans, remove_shared_memory, sweep_shared_memory


@pytest.mark.skipif(sys.platform != "linux", reason="start times are compared as Linux has them")
def test_an_orphan_that_is_deaf_to_term_is_killed_and_a_stranger_with_its_pid_is_not() -> None:
    """The pid alone may be a stranger's by now."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        began = psutil.Process(child.pid).create_time()

        assert 0 == end_orphans({(child.pid, began - 50.0)}, patience_seconds=0.0)
        assert child.poll() is None
        assert 1 == end_orphans({(child.pid, began)}, patience_seconds=0.0)
        child.wait(5)
        assert not psutil.pid_exists(child.pid)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def test_only_regions_with_our_prefix_go(tmp_path: Path) -> None:
    """Others keep theirs."""
    for name in ("ours-1-a", "ours-1-b", "ours-12-c", "theirs"):
        (tmp_path / name).touch()

    assert 2 == remove_shared_memory("ours-1-", tmp_path)
    assert {"ours-12-c", "theirs"} == {path.name for path in tmp_path.iterdir()}


def test_regions_of_a_killed_supervisor_go_with_the_next_start(tmp_path: Path) -> None:
    """Those of one that lives stay, and so does what has another name."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone, kept, other = (
        f"inferdeck-triton-{dead.pid}-1-a",
        f"inferdeck-triton-{os.getpid()}-1-b",
        "inferdeck-triton-x-1",
    )
    for name in (gone, kept, other):
        (tmp_path / name).touch()

    assert 1 == sweep_shared_memory(tmp_path)
    assert {kept, other} == {path.name for path in tmp_path.iterdir()}
