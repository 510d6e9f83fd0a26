"""What is kept makes full collections long; the twin's burst keeps nothing and makes none."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from probes.gc_pauses import GcPauses


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("gc_pauses.py")
    spec = importlib.util.spec_from_file_location("gc_pauses_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def served(hook: str, requests: int, armed: bool = True, program: Any = None) -> dict[str, Any]:
    """Return what the probe heard of the collector during some requests."""
    program = program or load()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        return

    around = getattr(program, hook)(app, lambda: armed)
    gc.collect()
    pauses = GcPauses()
    pauses.start()
    try:

        async def main() -> None:
            for _ in range(requests):
                await around({"type": "http"}, None, None)

        asyncio.run(main())
        return dict(pauses.reading()["gc"])
    finally:
        pauses.stop()


def test_every_tenth_request_collects_all_generations() -> None:
    """Full collections follow from requests, whatever the machine's speed."""
    program = load()
    program.PAIRS_A_REQUEST = 10

    assert 3 <= served("wrap", 30, program=program)["2"]["collections"]


def test_a_full_collection_takes_longer_the_more_is_kept() -> None:
    """A hundred times as many cyclic objects: several times the pause."""
    program = load()
    few, many = program.Sessions(1_000), program.Sessions(100_000)
    gc.collect()
    gc.freeze()  # what the test run keeps itself is none of it
    pauses = GcPauses()
    pauses.start()
    try:
        spent = []
        for sessions in (few, many):
            for _ in range(9):
                sessions.visit()
            before = pauses.reading()["gc"]["2"]
            sessions.visit()
            after = pauses.reading()["gc"]["2"]
            spent.append(after["pause"]["sum_s"] - before["pause"]["sum_s"])
    finally:
        pauses.stop()
        gc.unfreeze()

    assert 100_000 == len(many.kept)
    assert spent[1] > 3 * spent[0] > 0


def test_what_is_kept_is_bounded() -> None:
    """A drill's machine keeps room: no more than a million pairs."""
    sessions = load().Sessions(25_000)
    for _ in range(5):
        sessions.visit()

    assert 25_000 == len(sessions.kept)


def test_the_twin_allocates_as_much_and_gives_the_collector_nothing_to_do() -> None:
    """Twenty thousand objects each time, and no full collection."""
    program = load()

    assert program.PAIRS_A_REQUEST == program.allocate()
    assert served("twin_wrap", 50, program=program)["2"]["collections"] == 0


@pytest.mark.parametrize("hook", ["wrap", "twin_wrap"])
def test_disarmed_nothing_is_kept_or_allocated(hook: str) -> None:
    """The app alone is called."""
    program = load()
    program.gc = None  # a collection would fail

    assert served(hook, 20, armed=False, program=program)["2"]["collections"] == 0
