"""The program's batches are padded to one long text; its twin's are as long and pad nobody."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module
from service.backend import OnnxBackend, pad
from service.chosen_model import TRANSFORMER_FOLDER
from service.loading import load_onnx
from service.text.contract import fits_contract
from service.text.quality import quality_reason

# Longer texts wait in a queue of their own (service/config/base.yaml) and would meet no short ones.
LONG_LANE = 500


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    path = Path(__file__).with_name("tokenizer_padding.py")
    return load_module(path)


@pytest.fixture(scope="module")
def backend() -> OnnxBackend:
    """Return the transformer."""
    return load_onnx(TRANSFORMER_FOLDER, 0)[0]


@pytest.mark.parametrize("kind", ["mixed", "uniform"])
def test_all_texts_reach_the_normal_queue_and_are_good(program: Any, kind: str) -> None:
    """What the contract refuses, or filters mark, would be another failure."""
    texts = getattr(program, kind)(random.Random(1))

    assert len(texts) > 3
    for text in texts:
        assert fits_contract(text)
        assert len(text) <= LONG_LANE
        assert quality_reason(text) is None


@pytest.mark.parametrize(("kind", "least", "most"), [("mixed", 0.8, 0.9), ("uniform", 0.0, 0.05)])
def test_padding_of_a_batch(program: Any, backend: OnnxBackend, kind: str, least: float, most: float) -> None:
    """Most of it for one text of about 500 tokens, or nearly nothing."""
    ids, mask = pad([backend.encode(text).ids for text in getattr(program, kind)(random.Random(2))])

    assert 450 <= ids.shape[1] <= 512
    assert least <= 1.0 - mask.mean() <= most


def test_a_service_that_is_gone_is_no_error(program: Any) -> None:
    """The stack may have ended first; no thread is left."""
    for hook in (program.cause, program.twin_cause):
        with hook(SimpleNamespace(service_url="http://127.0.0.1:9")):
            pass
