"""What the tests of the programs about cards share: a program as a module, and what the exporter sees of its card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program

HERE = Path(__file__).parent
WORKER = 4001

# In a process of its own, which finds the stub as the exporter of a drill does. The service's worker is 4001.
LOOK = """
import json
from exporters.gpu.gauges import gpu_gauges
from exporters.gpu.nvml import NvmlReader
shown = gpu_gauges(NvmlReader().read(), {4001})
flat = {" ".join((name, *labels)): value for name, found in shown.items() for labels, value in found.items()}
print(json.dumps(flat))
"""


def played(slug: str, folder: Path) -> tuple[Any, Any]:
    """Return a program as a module and the stack for its causes, after its preparation.

    Args:
        slug: The program.
        folder: Stands for the run's state folder.
    """
    told = read_program(HERE / f"{slug}.py")
    assert (slug, True) == (told.slug, told.simulated)
    assert {"prepare", "usual", "cause", "twin_cause", "cannot_cause"} <= told.hooks
    program = load_module(told.path)
    if program.cannot_cause():
        pytest.skip(program.cannot_cause())
    program.prepare(folder)
    return program, SimpleNamespace(state_dir=folder, worker_pids=[WORKER])


def asked(program: Any, folder: Path) -> dict[str, float]:
    """Return what the exporter shows of the card now, by name and labels, as told by NVML's real binding.

    Args:
        program: The program, which says how the exporter finds the card.
        folder: Stands for the run's state folder.
    """
    told = {name: value.replace("{folder}", str(folder)) for name, value in program.EXPORTER_ENV.items()}
    argv = [sys.executable, "-c", LOOK]
    done = subprocess.run(argv, env={**os.environ, **told}, capture_output=True, text=True, timeout=120, check=True)
    return dict(json.loads(done.stdout))
