"""The slow version is a whole model that answers alike and takes longer; the twin's takes as long."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from inferdeck.drill.program import load_module, read_program
from inferdeck.settings import load_settings
from service.backend import OnnxBackend, pad
from service.canary.state import CanaryStore
from service.loading import load_onnx
from service.training.ensure import ensure_model

PROGRAM = Path(__file__).with_name("canary_regression.py")


def seconds(backend: OnnxBackend, text: str) -> float:
    """Return the least time of some calls: what the graph takes, whatever the machine does beside."""
    ids, mask = pad([backend.encode(text).ids])
    best = 1e9
    for _ in range(10):
        began = time.perf_counter()
        backend.forward(ids, mask)
        best = min(best, time.perf_counter() - began)
    return best


@pytest.mark.parametrize(("hook", "factor"), [("cause", 3.0), ("twin_cause", 0.0)])
def test_a_second_version_gets_a_tenth_and_answers_alike(tmp_path: Path, hook: str, factor: float) -> None:
    """It is in the shared state while the failure lasts; its logits are the first one's."""
    assert {"cause", "twin_cause"} <= read_program(PROGRAM).hooks
    # a fresh checkout has none yet
    ensure_model(load_settings().model_path, lambda _what, _share: None)
    program = load_module(PROGRAM)
    store = CanaryStore(tmp_path / "service" / "canary")
    with getattr(program, hook)(SimpleNamespace(state_dir=tmp_path)):
        state = store.read()
        assert state is not None
        assert state.model is not None
        assert state.share == 0.1
        first, second = (load_onnx(folder, 0)[0] for folder in (load_settings().model_path, Path(state.model)))
    after = store.read()
    assert after is not None
    assert after.share == 0.0
    assert first.version != second.version
    ids, mask = pad([first.encode(text).ids for text in ("房间很干净", "The battery is dead. Very disappointed!")])
    assert np.allclose(first.forward(ids, mask), second.forward(ids, mask), atol=1e-5)
    assert seconds(second, "房间很干净") > factor * seconds(first, "房间很干净")
