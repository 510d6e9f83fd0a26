"""The program's loads wait for each other; its twin is one slow load."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import service.tokens
from inferdeck.drill.program import load_module
from probes.tokenizing import Loads
from service.tokens import look


@pytest.fixture
def program() -> Any:
    """Load the program as a module."""
    return load_module(Path(__file__).with_name("tokenizer_load_lock.py"))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Count loads here alone, of files that need not be there."""
    mine, load = Loads(), service.tokens.load_tokenizer
    monkeypatch.setattr(service.tokens, "read_tokenizer", lambda path: path.name)
    monkeypatch.setattr(service.tokens, "load_tokenizer", lambda path: load(path, mine))
    return mine


@pytest.mark.parametrize(("plugins", "together"), [(3, 3), (0, 1)])
def test_loads_side_by_side_take_one_after_another(program: Any, loads: Loads, plugins: int, together: int) -> None:
    """Plugins' alone, or the service's own, which is slow and waits for nobody."""
    threads = program.load_slowly(plugins, 0.1)
    if not plugins:
        assert "f" == service.tokens.load_tokenizer(Path("f"))
    for thread in threads:
        thread.join(60)

    view = look(None, loads)
    assert together == view.together
    assert view.quickest_seconds is not None
    assert view.slowest_seconds is not None
    assert (view.slowest_seconds > view.quickest_seconds + 0.15) == (plugins > 0)


@pytest.mark.parametrize("armed", [True, False])
@pytest.mark.parametrize("hook", ["wrap", "twin_wrap"])
def test_only_a_process_that_starts_armed_is_slow(
    program: Any, loads: Loads, hook: str, armed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app stays the same."""
    asked: list[int] = []
    monkeypatch.setattr(program, "load_slowly", asked.append)
    app = object()

    assert getattr(program, hook)(app, lambda: armed) is app
    assert asked == ([] if not armed else [program.PLUGINS if hook == "wrap" else 0])
    assert not loads.ended


@pytest.mark.parametrize(("hook", "waits"), [("cause", False), ("twin_cause", True)])
def test_each_restarts_the_service_once(program: Any, hook: str, waits: bool) -> None:
    """The failure is watched while it lasts; the twin is over when the service is ready."""
    seen: list[bool] = []
    stack = SimpleNamespace(restart_service=lambda *, wait=True: seen.append(wait))
    with getattr(program, hook)(stack):
        assert [waits] == seen
