"""The program's model takes more memory for each token while it is armed, and answers as before."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.backend import OnnxBackend


def load() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("batch_too_large.py")
    spec = importlib.util.spec_from_file_location("batch_too_large_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("hook", "token"), [("wrap", 2 << 20), ("twin_wrap", 1 << 15)])
def test_memory_is_taken_for_each_token_only_while_armed(
    monkeypatch: pytest.MonkeyPatch, hook: str, token: int
) -> None:
    """A bounded array of ones, so that it is really there; the logits are the model's own."""
    taken: list[int] = []
    armed = [False]
    program = load()
    monkeypatch.setattr(OnnxBackend, "forward", lambda _self, ids, _mask: ids * 2)
    monkeypatch.setattr(program, "HOLD_SECONDS", 0.0)

    def ones(size: int, kind: Any) -> Any:
        taken.append(size)
        return np.zeros(1, kind)

    monkeypatch.setattr(program.np, "ones", ones)
    app: Any = object()
    assert getattr(program, hook)(app, lambda: armed[0]) is app
    backend: Any = object.__new__(OnnxBackend)
    ids = np.arange(6).reshape(2, 3)
    assert (backend.forward(ids, ids) == ids * 2).all()
    assert taken == []
    armed[0] = True
    assert (backend.forward(ids, ids) == ids * 2).all()
    wide = np.zeros((8, 512), np.int64)
    backend.forward(wide, wide)
    assert taken == [6 * token, min(8 * 512 * token, 96 << 20)]
