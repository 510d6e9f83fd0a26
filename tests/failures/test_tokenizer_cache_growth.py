"""The program's cache grows with every text; its twin's keeps to its bound."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import service.tokens
from inferdeck.drill.program import load_module
from service.text.contract import fits_contract
from service.text.quality import quality_reason


@pytest.fixture
def program() -> Any:
    """Load the program as a module."""
    return load_module(Path(__file__).with_name("tokenizer_cache_growth.py"))


@pytest.mark.parametrize("armed", [True, False])
def test_only_a_process_that_starts_armed_forgets_the_bound(
    program: Any, armed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app stays the same."""
    monkeypatch.setattr(service.tokens, "keep", service.tokens.keep)
    app = object()

    assert program.wrap(app, lambda: armed) is app
    kept = service.tokens.keep(len, 3)
    for number in range(10):
        kept("x" * number)
    assert (10 if armed else 3) == kept.cache_info().currsize  # type: ignore[attr-defined]  # of functools


def test_texts_are_good_and_no_two_alike(program: Any) -> None:
    """What filters mark would be another failure; twelve sentences have half a billion orders."""
    rng = random.Random(1)
    texts = [program.distinct(rng, number) for number in range(500)]
    few = {program.repeated(rng, number) for number in range(500)}

    assert (500, program.FEW) == (len(set(texts)), len(few))
    assert all(fits_contract(text) and quality_reason(text) is None for text in (*texts[:50], *few))


@pytest.mark.parametrize(("hook", "restarts"), [("cause", 1), ("twin_cause", 0)])
def test_the_failure_comes_by_a_deploy(program: Any, hook: str, restarts: int) -> None:
    """A service that is gone is no error; no thread is left."""
    seen: list[None] = []
    stack = SimpleNamespace(service_url="http://127.0.0.1:9", restart_service=lambda: seen.append(None))
    with getattr(program, hook)(stack):
        pass
    assert restarts == len(seen)
