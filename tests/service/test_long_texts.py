"""Long texts are read to their end, alone and in batches, and their rows tell each window."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from service.backend import Encoded, OnnxBackend, Window, pad
from service.degradation.fallback import _Job
from service.long_texts import STAGE, judged, merged, rows_of
from service.recording import NO_RECORD
from service.scheduler.batch_call import BatchCall
from service.scheduler.ticket import Ticket
from tests.service.test_backend import make

LONG = "很好很差good很好 bad very。很差very good bad很好good"
SHORT = "很好"


class Kept:
    """A row that keeps its stages."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, dict[str, Any]]] = []

    def stage(self, name: str, /, **attributes: Any) -> Any:
        """Keep the stage."""
        self.stages.append((name, attributes))
        return self

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def set(self, **attributes: Any) -> None:
        """Add to the latest stage."""
        self.stages[-1][1].update(attributes)

    def refused(self, _reason: str) -> None:
        """Do nothing."""

    degraded = refused

    def low_quality(self) -> None:
        """Do nothing."""


@pytest.fixture(scope="module")
def backend() -> OnnxBackend:
    """Return a model that takes eight tokens."""
    return make()


def ask(backend: OnnxBackend, texts: Sequence[str]) -> tuple[list[Any], list[Kept]]:
    """Return the results of one batch and its rows."""
    loop = asyncio.new_event_loop()
    rows = [Kept() for _ in texts]
    tickets = [
        Ticket(text, row, "normal", entered_ns=0, deadline_ns=2**62, future=loop.create_future())
        for text, row in zip(texts, rows, strict=True)
    ]
    found = BatchCall(backend, tickets, 1, lambda records, name, _batch, told: records[0].stage(name, **told))()
    loop.close()
    return found, rows


def of_windows(backend: OnnxBackend, text: str) -> np.ndarray[Any, Any]:
    """Return a text's logits from one call for each window."""
    found = backend.encode(text)
    each = [backend.forward(*pad([row]))[0] for row in rows_of(found)]
    new = [window.new for window in found.windows] or [1]
    return np.asarray(np.average(each, axis=0, weights=new))


@pytest.mark.parametrize("texts", [[LONG], [SHORT, LONG], [LONG, SHORT, LONG + LONG], [SHORT, SHORT]])
def test_alone_and_in_a_batch_the_answer_is_that_of_all_windows(backend: OnnxBackend, texts: list[str]) -> None:
    """Batch mates, and how many windows they have, change nothing but float noise."""
    results, rows = ask(backend, texts)
    for text, result, row in zip(texts, results, rows, strict=True):
        assert result.logits[0] == pytest.approx(of_windows(backend, text), abs=1e-5)
        told = dict(row.stages)
        assert (text != SHORT) == (STAGE in told)
        assert backend.encode(text).tokens == told["sentiment.tokenizer"]["tokens"]
        assert 0 <= told["sentiment.tokenizer"]["padding_ratio"] < 1


def test_each_window_is_told(backend: OnnxBackend) -> None:
    """With its tokens, label and confidence."""
    _, rows = ask(backend, [LONG])
    told = dict(rows[0].stages)[STAGE]
    windows = backend.encode(LONG).windows
    assert len(windows) == told["chunks"] > 1
    for number, window in enumerate(windows, 1):
        assert len(window.ids) == told[f"chunk_{number}_tokens"]
        assert told[f"chunk_{number}_label"] in backend.labels
        assert 1 / 3 <= told[f"chunk_{number}_confidence"] <= 1


def test_the_end_of_a_long_text_counts(backend: OnnxBackend) -> None:
    """A model that cut would answer both alike."""
    first, second = (ask(backend, ["很" * 8 + end])[0][0].logits[0] for end in ("very", "bad"))
    assert np.abs(first - second).max() > 1e-3


def test_tokens_in_two_windows_weigh_once(backend: OnnxBackend) -> None:
    """Three new tokens beside one: three quarters."""
    found = Encoded([1], 4, truncated=False, windows=(Window([1, 1, 1], 3), Window([1, 1, 1], 1)))
    logits = np.array([[4, 0, 0], [0, 8, 0]], dtype=np.float32)
    assert [[3, 2, 0]] == merged(logits, found, backend).tolist()


def test_files_fallback_and_service_say_the_same(backend: OnnxBackend) -> None:
    """One function of windows for all doors."""
    results, _ = ask(backend, [LONG])
    offline = judged(backend, [LONG, SHORT, LONG * 20], rows=2)
    fallback = _Job(backend, LONG, "triton_down", NO_RECORD)()
    assert fallback is not None
    assert offline[0] == fallback
    scaled = np.exp(results[0].logits[0] / backend.temperature)
    assert offline[0].confidence == pytest.approx(float(scaled.max() / scaled.sum()), abs=1e-5)
