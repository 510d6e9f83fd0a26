"""The program's photos are blurred, its twin's are dark and sharp; both are photos that the route judges."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module
from probes.images.quality import judge_photo


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("blurred_images.py")
    return load_module(path)


@pytest.mark.parametrize("number", range(6))
def test_photos_are_blurred_sharp_and_dark_as_they_say(program: Any, number: int) -> None:
    """A dark one has a quarter of the light, and neither fault: it can still be read."""
    soft, sharp, dark = (judge_photo(make(number)) for make in (program.soft, program.sharp, program.dark))
    assert ("blurred", "blur") == (soft.verdict, soft.reason)
    assert ("sharp", None) == (sharp.verdict, sharp.reason)
    assert ("sharp", None) == (dark.verdict, dark.reason)
    assert (dark.brightness or 1.0) < 0.4 * (sharp.brightness or 0.0)


def test_a_service_that_is_gone_is_no_error(program: Any) -> None:
    """The stack may have ended first; no thread is left."""
    for hook in (program.cause, program.twin_cause):
        with hook(SimpleNamespace(service_url="http://127.0.0.1:9")):
            pass
