"""A device's memory and utilisation, read on a clock of its own; NVML by a stub of its library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from service.memory_device import Absent, DeviceReading, DeviceWatch, NvmlDevice, RamDevice
from tests.stub_nvml import build_stub

# The library is chosen when a process starts: readings are taken in one that finds the stub.
READ = """
import json, sys, pathlib
from service.memory_device import NvmlDevice
device = NvmlDevice(0, int(sys.argv.pop()))
for scenario in sys.argv[2:]:
    pathlib.Path(sys.argv[1]).write_text(scenario)
    print(json.dumps(repr(device.read())))
"""
WELL = "driver 550\ncount 1\n0.name H\n0.utilization 97 40\n0.memory 1000 300 700\n"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the stub."""
    folder = tmp_path_factory.mktemp("nvml")
    try:
        build_stub(folder)
    except FileNotFoundError:
        pytest.skip("no gcc")
    return folder


def readings(stub: Path, *scenarios: str, budget: int = 0) -> list[str]:
    """Return what one process reads of scenario after scenario."""
    path = stub / "scenario"
    path.write_text(scenarios[0])
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stub), "STUB_NVML_SCENARIO": str(path)}
    argv = [sys.executable, "-c", READ, str(path), *scenarios, str(budget)]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_real_pynvml_over_the_stub_reads_memory_and_utilisation_and_recovers_from_a_lost_card(stub: Path) -> None:
    """Percent become a ratio; a lost card is absent, and there again afterwards; without utilisation memory is left."""
    lost = WELL + "0 !15\n"
    mig = WELL.replace("0.utilization 97 40\n", "")
    well, gone, back, partly = readings(stub, WELL, lost, WELL, mig)
    assert well == back == repr(DeviceReading(300, 700, 0.97))
    assert gone.startswith("Absent(reason='NVML: ")
    assert partly == repr(DeviceReading(300, 700, None))


def test_budget_leaves_less_than_the_card_has(stub: Path) -> None:
    """Of 1,000 bytes with 700 in use 300 are free; of a budget of 750, 50; of one that is used up none."""
    told = [readings(stub, WELL, budget=budget)[0] for budget in (2000, 750, 100)]
    assert told == [repr(DeviceReading(free, 700, 0.97)) for free in (300, 50, 0)]


def test_what_others_hold_is_not_the_models(stub: Path) -> None:
    """A neighbour's memory is neither free nor held; without a process of ours nobody can be told apart."""
    neighbour = WELL + "0.process 4001 500 /usr/bin/train\n"
    triton = neighbour + "0.process 4002 150 /opt/bin/tritonserver\n0.process 4003 30 /opt/triton_python_backend_stub\n"
    unknown = triton + "0.process 4004 - /usr/bin/x\n"
    refused = WELL + "0.processes !4\n"
    told = readings(stub, neighbour, triton, unknown, refused)
    assert told == [repr(DeviceReading(300, held, 0.97)) for held in (700, 200, 200, 700)]


def test_the_process_that_asks_is_the_models_own(stub: Path) -> None:
    """By its pid, whatever its name; the neighbour beside it is taken off."""
    script = READ.replace("for scenario", "import os\nfor scenario").replace(
        "write_text(scenario)", 'write_text(scenario.replace("OWN", str(os.getpid())))'
    )
    scenario = WELL + "0.process OWN 100 /usr/bin/python\n0.process 4001 500 /usr/bin/train\n"
    path = stub / "scenario"
    path.write_text(scenario)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stub), "STUB_NVML_SCENARIO": str(path)}
    argv = [sys.executable, "-c", script, str(path), scenario, "0"]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(told.stdout) == repr(DeviceReading(300, 200, 0.97))


def test_the_peak_is_kept_and_begins_anew_when_a_model_is_loaded() -> None:
    """The most of all readings; loading's own peak is forgotten, and a lost card adds nothing."""
    held = [5, 90, 40, 60, 0, 20]
    watch = DeviceWatch(lambda: DeviceReading(10, held.pop(0)) if held[0] else Absent(f"lost {held.pop(0)}"))
    assert watch.peak_bytes is None
    seen: list[int | None] = []
    for step in range(6):
        if step == 3:
            watch.forget_peak()
            seen.append(watch.peak_bytes)
        watch.tick()
        seen.append(watch.peak_bytes)
    assert seen == [5, 90, 90, 40, 60, 60, 60]
    unknown = DeviceWatch(lambda: Absent("no driver"))
    unknown.tick()
    unknown.forget_peak()
    assert unknown.peak_bytes is None


def test_without_library_driver_or_package_there_is_no_reading(stub: Path) -> None:
    """Each is said, none raises."""
    (told,) = readings(stub, "init !9\n")
    assert told.startswith("Absent(")

    def missing() -> Any:
        raise ImportError

    assert NvmlDevice(0, 0, missing).read() == Absent("nvidia-ml-py is not installed")


def test_ram_plays_a_device_with_a_budget_and_a_reserve() -> None:
    """Free is what is left less the reserve, and of the budget what batches did not take."""
    held, left = [100], [1000]
    device = RamDevice(200, 0, lambda: False, lambda: held[0], lambda: left[0])
    assert device.read() == DeviceReading(800, 100, noise_bytes=8 << 20)
    idle = [False]
    device = RamDevice(200, 300, lambda: idle[0], lambda: held[0], lambda: left[0])
    device.read()
    held[0] = 250
    read = device.read()
    assert isinstance(read, DeviceReading)
    assert (read.free_bytes, read.held_bytes) == (150, 250)
    held[0] = 900
    read = device.read()
    assert isinstance(read, DeviceReading)
    assert read.free_bytes == 0
    idle[0] = True  # the model was loaded, or a cache was filled: no batch took that
    read = device.read()
    assert isinstance(read, DeviceReading)
    assert read.free_bytes == 300


def test_ram_of_this_process_is_read() -> None:
    """By the real figures."""
    read = RamDevice(0).read()
    assert isinstance(read, DeviceReading)
    assert read.held_bytes > 1 << 20


def test_old_reading_is_none_and_a_broken_source_costs_itself_alone(caplog: Any) -> None:
    """A driver that hangs leaves the last reading, which is too old after 2 s; one that raises is absent."""
    now, source = [0.0], [DeviceReading(1, 2)]
    seen: list[Any] = []

    def read() -> DeviceReading:
        return source[0]

    watch = DeviceWatch(read, seen.append, clock=lambda: now[0])
    assert isinstance(watch.latest(), Absent)
    watch.tick()
    now[0] = 2.0
    assert watch.latest() == DeviceReading(1, 2)
    now[0] = 2.1
    assert isinstance(watch.latest(), Absent)
    source.clear()
    watch.tick()
    watch.tick()
    assert watch.latest() == Absent("IndexError")
    assert [type(one) for one in seen] == [DeviceReading, Absent, Absent]
    assert caplog.text.count("no reading of the model's device") == 1


def test_watch_reads_in_a_thread_and_ends(caplog: Any) -> None:
    """A reader that hangs does not hang the stop."""
    hang, entered = threading.Event(), threading.Event()

    def read() -> DeviceReading:
        entered.set()
        hang.wait(30)
        return DeviceReading(1, 1)

    watch = DeviceWatch(read)
    watch.start()
    assert entered.wait(20)
    watch.stop(wait_seconds=0.05)
    assert isinstance(watch.latest(), Absent)
    hang.set()
