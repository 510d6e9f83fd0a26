"""The card is over the bound at which the service degrades, or under it and steady, as exporter and service see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.settings import load_settings
from tests.failures._gpu_asked import asked, played


@pytest.mark.parametrize(("hook", "over"), [("cause", True), ("twin_cause", False)])
def test_the_card_is_over_the_services_bound_or_just_under_it(tmp_path: Path, hook: str, *, over: bool) -> None:
    """The same file is named to the service, whose shipped bound decides."""
    program, stack = played("gpu_saturated", tmp_path)
    assert program.EXPORTER_ENV == program.SERVICE_ENV
    with program.usual(stack):
        assert asked(program, tmp_path)["gpu_utilization_ratio 0"] < 0.5
        with getattr(program, hook)(stack):
            shown = asked(program, tmp_path)

    assert over == (shown["gpu_utilization_ratio 0"] > load_settings().degraded_gpu_busy)
    assert shown["gpu_utilization_ratio 0"] > 0.9
    assert 0.0 == shown["gpu_processes 0 other"]
