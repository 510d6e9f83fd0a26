"""The program's texts pass the contract and are damaged; its twin's are the same reviews and are not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module
from service.text.contract import fits_contract
from service.text.quality import quality_reason


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("low_quality_text.py")
    return load_module(path)


@pytest.mark.parametrize("number", range(8))
def test_damaged_texts_reach_the_model(program: Any, number: int) -> None:
    """What the contract refuses would be another failure."""
    text = program.damaged(number)
    assert fits_contract(text)
    assert ("markup" if number % 2 else "replacement") == quality_reason(text)


@pytest.mark.parametrize("number", range(4))
def test_a_careful_client_s_reviews_are_good(program: Any, number: int) -> None:
    """Rich in emoji before they were cleaned, and nothing is wrong with them."""
    text = program.careful(number)
    assert any(one > "\U00010000" for one in program.REVIEWS[number])
    assert fits_contract(text)
    assert quality_reason(text) is None


def test_a_service_that_is_gone_is_no_error(program: Any) -> None:
    """The stack may have ended first; no thread is left."""
    for hook in (program.cause, program.twin_cause):
        with hook(SimpleNamespace(service_url="http://127.0.0.1:9")):
            pass
