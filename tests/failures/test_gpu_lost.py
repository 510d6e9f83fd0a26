"""The card answers, is lost while the failure lasts, and is there again; the twin's answers all the time."""

from __future__ import annotations

from pathlib import Path

from tests.failures._gpu_asked import asked, played


def test_the_card_is_lost_for_as_long_as_the_failure_lasts(tmp_path: Path) -> None:
    """Lost as NVML says it, with no figure left; the worker is on the card before and afterwards."""
    program, stack = played("gpu_lost", tmp_path)
    with program.usual(stack):
        assert {1.0} == {asked(program, tmp_path)[one] for one in ("gpu_card_up 0", "gpu_processes 0 own")}
        with program.cause(stack):
            lost = asked(program, tmp_path)
        assert 1.0 == asked(program, tmp_path)["gpu_processes 0 own"]

    assert (0.0, 1.0) == (lost["gpu_card_up 0"], lost["gpu_card_state 0 lost"])
    assert not [one for one in lost if one.startswith("gpu_utilization")]


def test_the_twin_is_busy_and_answers(tmp_path: Path) -> None:
    """High and stable use."""
    program, stack = played("gpu_lost", tmp_path)
    with program.usual(stack), program.twin_cause(stack):
        shown = asked(program, tmp_path)

    assert (1.0, 0.92) == (shown["gpu_card_up 0"], round(shown["gpu_utilization_ratio 0"], 3))
