"""The worker's memory on the card grows as long as the failure lasts; the twin's grows to where it stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.failures import _gpu
from tests.failures._gpu_asked import WORKER, asked, played

OWN = "gpu_process_memory_bytes 0 own python3.11"


def changes(program: Any, stack: Any, hook: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], int]:
    """Return what a hook's card holds for the worker by seconds, without waiting for them."""
    seen: list[Any] = []

    def moves(_stack: Any, change: Any) -> Any:
        seen.append(change)
        return _gpu.becomes(stack, lambda card: card)

    monkeypatch.setattr(program, "moves", moves)
    with getattr(program, hook)(stack):
        pass
    return lambda seconds: int(seen[0](program_card(), seconds).held[0][1])


def program_card() -> _gpu.Card:
    """Return the usual card of one worker."""
    return _gpu.Card(held=((WORKER, _gpu.MODEL, "/usr/bin/python3.11"),))


def test_a_leak_fills_the_card_and_an_arena_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak's pace stays the same; an arena is larger after half a minute, and no larger after an hour."""
    program, stack = played("gpu_memory_leak", tmp_path)
    leak = changes(program, stack, "cause", monkeypatch)
    assert 0 < leak(60) - leak(0) == leak(120) - leak(60)
    assert leak(600) > _gpu.SIZE
    arena = changes(program, stack, "twin_cause", monkeypatch)
    assert arena(0) < leak(60) < arena(30) == arena(3600) < _gpu.SIZE


def test_the_exporter_sees_it_grow(tmp_path: Path) -> None:
    """Of the worker's own memory, while all else stays."""
    program, stack = played("gpu_memory_leak", tmp_path)
    with program.usual(stack):
        before = asked(program, tmp_path)
        with program.cause(stack):
            until = time.monotonic() + 60
            while (shown := asked(program, tmp_path))[OWN] < before[OWN] + _gpu.GIB / 4:
                assert time.monotonic() < until
                time.sleep(0.2)

    assert before["gpu_memory_free_bytes 0"] - shown["gpu_memory_free_bytes 0"] == shown[OWN] - before[OWN]
