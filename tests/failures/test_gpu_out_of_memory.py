"""A model whose batches do not fit into what the played card has left raises, and answers where they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.backend import OnnxBackend
from tests.failures._gpu_asked import asked, played


@pytest.mark.parametrize(("hook", "fits"), [("cause", False), ("twin_cause", True)])
def test_batches_take_memory_of_the_card_only_while_armed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, *, fits: bool
) -> None:
    """The error says what was wanted and what was left; unarmed, nobody looks at the card."""
    program, stack = played("gpu_out_of_memory", tmp_path)
    monkeypatch.setattr(OnnxBackend, "forward", lambda _self, ids, _mask: ids * 2)
    monkeypatch.setenv("STUB_NVML_SCENARIO", str(tmp_path / "card"))
    armed = [False]
    app: Any = object()
    assert program.wrap(app, lambda: armed[0]) is app
    backend: Any = object.__new__(OnnxBackend)
    small, large = np.zeros((1, 8), np.int64), np.zeros((8, 64), np.int64)
    with program.usual(stack), getattr(program, hook)(stack):
        backend.forward(large, large)
        armed[0] = True
        backend.forward(small, small)
        if fits:
            backend.forward(large, large)
        else:
            with pytest.raises(RuntimeError, match=r"out of memory: \d+ bytes wanted, \d+ left"):
                backend.forward(large, large)


def test_the_worker_holds_all_of_the_card_or_leaves_what_batches_need(tmp_path: Path) -> None:
    """Under the rule's bound, and above it."""
    program, stack = played("gpu_out_of_memory", tmp_path)
    left = {}
    for hook in ("cause", "twin_cause"):
        with program.usual(stack), getattr(program, hook)(stack):
            shown = asked(program, tmp_path)
        left[hook] = shown["gpu_memory_free_bytes 0"] / shown["gpu_memory_size_bytes 0"]

    assert left["cause"] < 0.02 < left["twin_cause"] < 0.1
