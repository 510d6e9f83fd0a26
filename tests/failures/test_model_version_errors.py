"""The version answers NaN for about one text in fifty and else as the first one; the twin's never does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from inferdeck.drill.program import load_module, read_program
from inferdeck.settings import load_settings
from service.backend import NotANumber, OnnxBackend, pad
from service.canary.state import CanaryStore
from service.loading import load_onnx
from service.reviews import review_requests
from service.training.ensure import ensure_model

PROGRAM = Path(__file__).with_name("model_version_errors.py")


def answers(backend: OnnxBackend, text: str) -> bool:
    """Return whether a model answers a text with numbers."""
    try:
        backend.forward(*pad([backend.encode(text).ids]))
    except NotANumber:
        return False
    return True


@pytest.mark.parametrize(("hook", "least", "most"), [("cause", 0.008, 0.04), ("twin_cause", 0.0, 0.0)])
def test_one_in_fifty_is_no_number(tmp_path: Path, hook: str, least: float, most: float) -> None:
    """Of real reviews; the others' logits are the first version's."""
    assert {"cause", "twin_cause"} <= read_program(PROGRAM).hooks
    # a fresh checkout has none yet
    ensure_model(load_settings().model_path, lambda _what, _share: None)
    program = load_module(PROGRAM)
    with getattr(program, hook)(SimpleNamespace(state_dir=tmp_path, service_url="http://127.0.0.1:9")):
        state = CanaryStore(tmp_path / "service" / "canary").read()
        assert state is not None
        assert state.model is not None
        first, second = (load_onnx(folder, 0)[0] for folder in (load_settings().model_path, Path(state.model)))
    texts = [json.loads(body)["text"] for body in review_requests(2000).bodies]
    failed = sum(not answers(second, text) for text in texts) / len(texts)
    assert least <= failed <= most
    whole = next(text for text in texts if answers(second, text))
    ids, mask = pad([first.encode(whole).ids])
    assert np.allclose(first.forward(ids, mask), second.forward(ids, mask), atol=1e-5)
