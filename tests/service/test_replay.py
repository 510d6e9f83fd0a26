"""Known texts asked again: other tokens, other answers and those that depend on the batch are no float noise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters import names_replay
from service.backend import Answer, BackendError, Encoded, OnnxBackend, pad
from service.chosen_model import TRANSFORMER_FOLDER
from service.loading import load_onnx
from service.replay import AGAINST, Replay, ReplayView, replay
from service.replayed import TEXTS, Stored, stored_answers, told_answers
from service.service_metrics import Snapshot, render
from service.text.contract import to_contract
from tests.service.test_loading import write_model


@pytest.fixture(scope="module")
def backend() -> OnnxBackend:
    """Return the shipped transformer, which has stored answers."""
    return load_onnx(TRANSFORMER_FOLDER, 0)[0]


class Changed:
    """The model with something that is not as it was."""

    def __init__(self, inner: OnnxBackend, *, noise: float = 0.0, by_width: float = 0.0, lower: bool = False) -> None:
        self._inner, self._noise, self._by_width, self._lower = inner, noise, by_width, lower
        self.labels, self.temperature, self.version = inner.labels, inner.temperature, inner.version
        self.device_type, self.stored = inner.device_type, inner.stored

    def encode(self, text: str) -> Encoded:
        """Return the tokens, of half the text where the tokenizer changed."""
        return self._inner.encode(text[: len(text) // 2] if self._lower else text)

    def forward(self, ids: Any, mask: Any) -> Any:
        """Return logits with noise, and with something of the batch's width in one class."""
        logits: Any = self._inner.forward(ids, mask)
        logits = logits + np.random.default_rng(0).normal(0.0, self._noise, logits.shape)
        logits[:, 0] += self._by_width * ids.shape[1]
        return logits.astype(np.float32)


def test_the_shipped_model_answers_as_it_did(backend: OnnxBackend) -> None:
    """Alone and in a batch."""
    found = replay(backend, backend.stored)

    assert found is not None
    differences, other = found
    assert set(AGAINST) == set(differences)
    assert max(differences.values()) < 1e-3
    assert 0.0 == other


@pytest.mark.parametrize(
    ("change", "stored", "batch", "tokens"),
    [
        ({"noise": 1e-5}, False, False, False),
        ({"by_width": 0.01}, True, True, False),
        ({"lower": True}, True, False, True),
    ],
    ids=["float noise", "the batch's width", "another tokenizer"],
)
def test_what_differs_is_told(
    backend: OnnxBackend, change: dict[str, Any], *, stored: bool, batch: bool, tokens: bool
) -> None:
    """By the tolerance of the rule, a hundredth."""
    found = replay(Changed(backend, **change), backend.stored)

    assert found is not None
    assert (stored, batch) == tuple(found[0][against] > 0.01 for against in AGAINST)
    assert tokens == (found[1] > 0.5)


class Staged:
    """A model in another process whose answers came from somebody else."""

    labels, temperature, version, device_type = ("a", "b", "c"), 1.0, "v", "cpu"
    stored = (Stored("x", (1,), (0.0, 0.0, 0.0)),)

    def encode(self, text: str) -> Encoded:
        """Return one token."""
        del text
        return Encoded([1], 1, truncated=False)

    def forward(self, ids: Any, mask: Any) -> Any:
        """Fail: a staged one is asked by `infer`."""
        del ids, mask
        raise BackendError("not in this process")

    def infer(self, ids: Any, mask: Any, told: Any, seconds: float) -> Answer:
        """Return a degraded answer."""
        del mask, told, seconds
        return Answer(np.ones((len(ids), 3), np.float32), "timeout", "v")


def test_anothers_answer_in_its_place_judges_nobody() -> None:
    """What stands in for Triton is not Triton; it counts as failed, and earlier figures stay."""
    play = Replay(Staged, 0.0)

    play.once()

    assert ReplayView({}, None, 0, 1) == play.view


@pytest.mark.parametrize("model", [None, "old"])
def test_without_model_or_stored_answers_nothing_is_replayed(tmp_path: Path, model: str | None) -> None:
    """Older trainings wrote none."""
    loaded = None if model is None else load_onnx(write_model(tmp_path / "m"), 0)[0]
    play = Replay(lambda: loaded, 0.0)

    play.once()

    assert ReplayView({}) == play.view


def test_it_runs_beside_the_service_and_ends_with_it(backend: OnnxBackend) -> None:
    """Every so often, until it is stopped."""
    play = Replay(lambda: backend, 0.01)
    play.start()
    until = time.monotonic() + 30
    while not play.view.done and time.monotonic() < until:
        time.sleep(0.01)
    play.stop()

    assert play.view.done


def test_what_a_training_stores_is_what_is_read_back(backend: OnnxBackend) -> None:
    """Texts in the contract's form, tokens, logits."""

    def answer(ids: Sequence[int]) -> Sequence[float]:
        logits: Sequence[float] = backend.forward(*pad([ids]))[0].tolist()
        return logits

    found = stored_answers({"replay": told_answers(lambda text: backend.encode(text).ids, answer)})

    assert [to_contract(text) for text in TEXTS] == [one.text for one in found]
    assert [one.ids for one in backend.stored] == [one.ids for one in found]


def test_series_and_words_are_those_of_the_names() -> None:
    """And nothing is shown of what was never compared."""
    assert names_replay.AGAINST == AGAINST

    def shown(view: ReplayView) -> set[str]:
        told = render(Snapshot("1", "c", "m", "f", "ready", {}, replay=view)).decode()
        return {one.name for one in text_string_to_metric_families(told) if one.name.startswith("model_replay")}

    assert {"model_replays"} == shown(ReplayView({}))
    whole = shown(ReplayView({"stored": 0.0, "batch": 0.0}, 0.0, 1))
    assert {metric.name.removesuffix("_total") for metric in names_replay.REPLAY} == whole
