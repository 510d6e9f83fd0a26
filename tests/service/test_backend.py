"""Tokenizer and session together, over a small real graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from service.backend import BackendError, OnnxBackend, pad
from service.training.graph import build_graph
from service.training.linear import BUCKETS, Linear
from service.training.tokens import build_tokenizer

VOCABULARY = 300


def make(weights: Any = None, bias: Sequence[float] = (0.1, 0.2, 0.3), **told: Any) -> OnnxBackend:
    """Return a backend over a graph with the given weights, random ones unless told."""
    tokenizer = build_tokenizer(["很好 很差 good bad very"] * 4, VOCABULARY)
    vocabulary = tokenizer.get_vocab_size()
    if weights is None:
        weights = np.random.default_rng(1).normal(size=(3, vocabulary + BUCKETS))
    graph = build_graph(Linear(weights=weights, bias=np.array(bias), alpha=1e-5), vocabulary)
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    defaults: dict[str, Any] = {"labels": ("negative", "neutral", "positive"), "temperature": 1.3, "max_tokens": 8}
    return OnnxBackend(tokenizer, session, **(defaults | {"vocabulary": vocabulary, "version": "v"} | told))


@pytest.fixture(scope="module")
def backend() -> OnnxBackend:
    """Return one backend for all tests, which do not change it."""
    return make()


def test_a_text_beyond_what_the_model_takes_becomes_windows(backend: OnnxBackend) -> None:
    """The row tells the text's tokens; all of them reach the model, two of eight twice."""
    encoded = backend.encode("很好很差很好很差很好")
    assert (encoded.tokens, encoded.truncated) == (10, False)
    assert [(8, 8), (4, 2)] == [(len(window.ids), window.new) for window in encoded.windows]
    assert encoded.ids == encoded.windows[0].ids
    assert backend.encode("很好").windows == ()


def test_text_without_tokens_gets_the_bias(backend: OnnxBackend) -> None:
    """Nothing to read leaves what the model knows without a text."""
    logits = backend.forward(*pad([backend.encode("").ids]))
    assert logits[0] == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize("bad", [-1, -16384, 300, 2**40])
def test_ids_outside_the_vocabulary_are_refused(backend: OnnxBackend, bad: int) -> None:
    """Negative ids would silently be taken from the table's end."""
    with pytest.raises(BackendError, match="token id outside"):
        backend.forward(*pad([[1, bad]]))


def test_logits_that_are_no_numbers_are_refused() -> None:
    """A NaN must not become a confident answer."""
    broken = make(bias=(0.0, float("nan"), 0.0))
    with pytest.raises(BackendError, match="no number"):
        broken.forward(*pad([[1, 2]]))


@given(st.lists(st.lists(st.integers(0, 20), max_size=8), min_size=1, max_size=5))
def test_batch_mates_do_not_matter(backend: OnnxBackend, rows: list[list[int]]) -> None:
    """A text alone and in a padded batch has the same logits."""
    together = backend.forward(*pad(rows))
    alone = np.concatenate([backend.forward(*pad([row])) for row in rows])
    assert together == pytest.approx(alone, abs=1e-5)


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=5))
def test_padding_is_as_wide_as_the_longest_row(rows: list[list[int]]) -> None:
    """The mask has a one for each real token and nothing else."""
    ids, mask = pad(rows)
    assert ids.shape == mask.shape == (len(rows), max([1, *map(len, rows)]))
    assert mask.sum(axis=1).tolist() == [len(row) for row in rows]
    assert [ids[i, : len(row)].tolist() for i, row in enumerate(rows)] == rows


def test_truncation_of_the_tokenizer_file_is_taken_out() -> None:
    """Otherwise a cut text would look like a whole one."""
    tokenizer: Tokenizer = build_tokenizer(["很好"] * 4, VOCABULARY)
    tokenizer.enable_truncation(1)
    own = OnnxBackend(tokenizer, None, labels=("a",), temperature=1.0, max_tokens=1, vocabulary=VOCABULARY, version="v")
    assert own.encode("很好").tokens == 2
