"""A saturated GPU degrades the service, and one that is not any more does not: the real pynvml over the stub."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stub_nvml import build_stub

# What the service runs for it, in a process that finds the stub; 30 s are cut to a third of one.
WATCH = """
import pathlib, sys, time
from service.degradation.assemble import DegradedParts
from service.settings import load_settings

path = pathlib.Path(sys.argv[1])
parts = DegradedParts(load_settings(backend="triton", degraded_gpu_seconds=0.3))
parts.start()

def wait(reason):
    until = time.monotonic() + 60
    while parts.answers.reason(None) != reason:
        assert time.monotonic() < until, reason
        time.sleep(0.02)

wait(None)
path.write_text(path.read_text().replace("utilization 50", "utilization 97"))
wait("gpu_saturated")
path.write_text(path.read_text().replace("utilization 97", "utilization 95"))
wait(None)
seen = parts.snapshot(None)
parts.stop()
print(seen.state.entered["gpu_saturated"], seen.state.left["gpu_saturated"], seen.gate.free_bytes)
"""


def test_saturation_begins_and_ends_by_what_nvml_says(tmp_path: Path) -> None:
    """97% is over the bound, 95% is not; both turns are counted, and the memory gate sees the same card."""
    try:
        build_stub(tmp_path)
    except FileNotFoundError:
        pytest.skip("no gcc")
    scenario = tmp_path / "scenario"
    scenario.write_text("driver 550\ncount 1\n0.name H\n0.utilization 50 40\n0.memory 1000 300 700\n")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "STUB_NVML_SCENARIO": str(scenario),
        "INFERDECK_STATE_DIR": str(tmp_path),
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
    }
    argv = [sys.executable, "-c", WATCH, str(scenario)]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert (told.returncode, told.stdout.split()) == (0, ["1", "1", "300"]), told.stderr
