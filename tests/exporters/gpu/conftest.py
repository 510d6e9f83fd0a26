"""The real pynvml over the stub library, in a process of its own: it must be found when the process starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.stub_nvml import build_stub

ROOT = Path(__file__).parents[3]
# Reads a scenario per line of stdin and answers with the snapshot's repr, with one reader over all of them.
LOOKS = """\
import sys
from exporters.gpu.nvml import NvmlReader
reader = NvmlReader()
for line in sys.stdin:
    print(repr(reader.read()), flush=True)
"""

Look = Callable[[str], str]


@pytest.fixture(scope="session")
def stub_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stub library."""
    if shutil.which("gcc") is None:
        if os.environ.get("CI"):
            pytest.fail("gcc is missing: the stub of libnvidia-ml cannot be built")
        pytest.skip("gcc is missing: the stub of libnvidia-ml cannot be built")
    return build_stub(tmp_path_factory.mktemp("nvml")).parent


@pytest.fixture(scope="session")
def stub_environment(stub_dir: Path) -> dict[str, str]:
    """The environment in which a process finds the stub."""
    return {**os.environ, "LD_LIBRARY_PATH": str(stub_dir), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def look(stub_environment: dict[str, str], tmp_path: Path) -> Iterator[Look]:
    """Reads the cards of a scenario; later scenarios are seen by the same reader, as a change in the machine."""
    scenario = tmp_path / "scenario"
    process = subprocess.Popen(
        [sys.executable, "-c", LOOKS],
        env={**stub_environment, "STUB_NVML_SCENARIO": str(scenario)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    told: IO[str] = process.stdin
    answered: IO[str] = process.stdout

    def ask(text: str) -> str:
        if text:
            scenario.write_text(text, encoding="utf-8")
        else:
            scenario.unlink(missing_ok=True)
        told.write("\n")
        told.flush()
        return answered.readline()

    with process:
        yield ask
        told.close()
        assert process.wait(10) == 0
