"""The program changes the format of one worker while it is armed, and only then; its texts hold personal data."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module
from service.filters.audit import Audit
from service.filters.chain import FilterChain
from service.filters.masking import mask


@pytest.fixture
def program() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("pii_mask_mismatch.py")
    return load_module(path)


def test_each_text_holds_personal_data(program: Any) -> None:
    """In Chinese and English, of three kinds."""
    kinds = [tuple(mask(text).counts) for text in program.TEXTS]
    assert [("phone",), ("phone",), ("id_card",), ("bank_card",)] == kinds


def test_one_worker_of_two_gets_the_new_format_while_it_is_armed(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one stays as it is, and the end of the failure brings back the old one."""
    monkeypatch.setenv("INFERDECK_DRILL_FLAG", str(tmp_path / "armed"))
    on = [False]
    chains = [FilterChain(Audit(None, {}), None) for _ in range(2)]
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        seen.append(scope["app"].state.filters.mask_format)

    workers = [program.wrap(app, lambda: on[0]) for _ in range(2)]

    def ask() -> list[str]:
        seen.clear()
        for worker, chain in zip(workers, chains, strict=True):
            scope = {"type": "http", "app": SimpleNamespace(state=SimpleNamespace(filters=chain))}
            asyncio.run(worker(scope, None, None))
        return list(seen)

    assert ["1", "1"] == ask()
    on[0] = True
    assert ["2", "1"] == ask()
    on[0] = False
    assert ["1", "1"] == ask()
