"""The quota throttles what computes under it, and is taken away again; without control groups it says so."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("cpu_throttled.py")
    spec = importlib.util.spec_from_file_location("cpu_throttled_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_groups_that_can_be_made_it_says_why(tmp_path: Path) -> None:
    """No controller, or one that may not be used by children: the run is left out."""
    program = load()
    assert program.quota_folder(tmp_path) is None
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    assert program.quota_folder(tmp_path) is None
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    assert tmp_path == program.quota_folder(tmp_path)


def test_what_computes_under_the_quota_is_throttled_and_the_group_goes_away() -> None:
    """By the kernel's own count of its periods."""
    program = load()
    if program.cannot_cause():
        pytest.skip(program.cannot_cause())
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with program.quota([busy.pid], program.quota_folder()) as group:
            stat = ""
            for _ in range(100):
                stat = (group / "cpu.stat").read_text()
                if "nr_throttled 0" not in stat:
                    break
                time.sleep(0.1)
        throttled = dict(line.split()[:2] for line in stat.splitlines())
    finally:
        busy.kill()
        busy.wait()

    assert int(throttled["nr_throttled"]) > 0
    assert not group.exists()
