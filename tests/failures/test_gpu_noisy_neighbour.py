"""Another program is on the card beside the worker, and fills it; the twin's holds as much and leaves it time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.failures._gpu_asked import asked, played


@pytest.mark.parametrize(("hook", "busy", "name"), [("cause", 0.99, "train"), ("twin_cause", 0.7, "serve")])
def test_a_foreign_program_holds_a_quarter_of_the_card(tmp_path: Path, hook: str, busy: float, name: str) -> None:
    """Told from the worker by its pid, and gone when the failure is over."""
    program, stack = played("gpu_noisy_neighbour", tmp_path)
    with program.usual(stack):
        before = asked(program, tmp_path)
        with getattr(program, hook)(stack):
            shown = asked(program, tmp_path)
        assert before == asked(program, tmp_path)

    assert (0.0, 1.0) == (before["gpu_processes 0 other"], shown["gpu_processes 0 other"])
    assert 0.25 == shown[f"gpu_process_memory_bytes 0 other {name}"] / shown["gpu_memory_size_bytes 0"]
    assert busy == round(shown["gpu_utilization_ratio 0"], 3)
