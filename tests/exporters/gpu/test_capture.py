from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exporters.gpu.scenarios import H200, MIG, TWO_ONE_LOST
from tests.exporters.gpu.test_nvml import snapshot


@pytest.mark.parametrize("scenario", [H200, MIG, TWO_ONE_LOST], ids=["whole", "mig", "lost"])
def test_a_capture_replays_to_the_same_readings(
    look: Callable[[str], str], stub_environment: dict[str, str], tmp_path: Path, scenario: str
) -> None:
    """What the script writes down is a scenario that reads as the machine did, but for who computes there."""
    original = snapshot(look(scenario))
    source = tmp_path / "machine"
    source.write_text(scenario, encoding="utf-8")

    captured = subprocess.run(
        [sys.executable, "-m", "exporters.gpu.capture"],
        env={**stub_environment, "STUB_NVML_SCENARIO": str(source)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    replayed = snapshot(look(captured))

    assert [(card.label, card.name, card.state, card.readings) for card in original.cards] == [
        (card.label, card.name, card.state, card.readings) for card in replayed.cards
    ]
    assert [process.used_bytes for card in original.cards for process in card.processes] == [
        process.used_bytes for card in replayed.cards for process in card.processes
    ]
    assert not [word for word in ("4001", "5001", "/usr", "python", "train") if word in captured]


def test_a_machine_without_nvml_is_told_in_a_line(stub_environment: dict[str, str], tmp_path: Path) -> None:
    """A driver that refuses is captured as such: its code is what the replay needs."""
    source = tmp_path / "machine"
    source.write_text("init !18\n", encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "exporters.gpu.capture"],
        env={**stub_environment, "STUB_NVML_SCENARIO": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "init !18\n", "") == (done.returncode, done.stdout, done.stderr)
