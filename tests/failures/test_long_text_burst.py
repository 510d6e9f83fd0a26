"""The program's long texts stand in the queue of the short ones; its twin's, the same, have one of their own."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program
from service.settings import load_settings
from service.text.contract import fits_contract
from service.text.quality import quality_reason

PATH = Path(__file__).with_name("long_text_burst.py")


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    return load_module(PATH)


def test_all_texts_are_good_long_and_no_two_alike(program: Any) -> None:
    """What the contract refuses, or filters mark, would be another failure."""
    found = program.texts(random.Random(1))

    assert program.BURST == len(set(found))
    for text in found:
        assert fits_contract(text)
        assert len(text) > load_settings().long_text_characters
        assert quality_reason(text) is None


def test_only_the_queue_of_long_texts_differs_from_the_twin(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin's is the default; the service knows the setting that is deployed."""
    deployed: list[dict[str, str]] = []
    stack = SimpleNamespace(service_url="http://127.0.0.1:9", deploy_service=deployed.append)
    for hook in (program.cause, program.twin_cause):
        with hook(stack):
            pass
    usual = load_settings().long_text_characters
    found = []
    for environment in deployed:
        for name, value in (dict(read_program(PATH).settings) | environment).items():
            monkeypatch.setenv(name, value)
        found.append(load_settings().long_text_characters)
    assert [0, usual] == found


def test_the_texts_keep_the_model_busy_long(program: Any) -> None:
    """Each of them gives the model at least ten times the tokens of a usual short review."""
    assert min(map(len, program.texts(random.Random(3)))) >= 900
