"""The backend asks Triton, and whatever Triton does, somebody answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from service.backend import Answer, BackendError, NotANumber, OnnxBackend, StagedBackend, infer
from service.backend_triton import TritonBackend
from service.breaker import Breaker
from service.triton.transport import TritonError


class _Session:
    def run(self, _outputs: Sequence[str], feed: dict[str, Any]) -> list[Any]:
        return [np.tile(np.array([[1.0, 2.0, 0.0]], dtype=np.float32), (len(feed["input_ids"]), 1))]


class _Tokenizer:
    def token_to_id(self, _token: str) -> int | None:
        return None

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...


class _Triton:
    """Answers or raises what it is told."""

    def __init__(self) -> None:
        self.answer: Any = np.array([[0.0, 0.0, 4.0]], dtype=np.float32)
        self.error: TritonError | None = None
        self.calls: list[dict[str, Any]] = []

    def infer(self, ids: Any, mask: Any, *, around: Any, **told: Any) -> Any:
        """Note the call."""
        self.calls.append({"ids": ids, "mask": mask, **told})
        if self.error is not None:
            raise self.error
        with around():
            return self.answer

    def close(self) -> None: ...


class Told:
    """Keeps the stages of a call."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, dict[str, Any]]] = []

    @contextmanager
    def stage(self, name: str, /, **attributes: Any) -> Any:
        """Note a stage."""
        self.stages.append((name, attributes))

        class Handle:
            def set(self, **more: Any) -> None:
                """Note its attributes."""
                attributes.update(more)

        yield Handle()

    def traceparent(self, stage: str) -> str:
        """Return what tells the stage."""
        return f"parent-{stage}"

    @property
    def names(self) -> list[str]:
        """Names in order."""
        return [name for name, _attributes in self.stages]


IDS = np.array([[5, 6]], dtype=np.int64)
MASK = np.ones((1, 2), dtype=np.int64)


def made(**told: Any) -> tuple[TritonBackend, _Triton]:
    """Return a backend and the Triton behind it."""
    local = OnnxBackend(
        _Tokenizer(),
        _Session(),
        labels=("negative", "neutral", "positive"),
        temperature=1.0,
        max_tokens=8,
        vocabulary=10,
        version="v",
    )
    triton: Any = _Triton()
    return TritonBackend(local, triton, Breaker(2), **told), triton


def test_triton_answers_and_its_stages_are_told() -> None:
    """triton.client with its parts, model.forward below it, the trace handed on, both padded to one length."""
    backend, triton = made(pad_tokens=6)
    told = Told()

    answer = infer(backend, IDS, MASK, told, 1.0)

    assert isinstance(backend, StagedBackend)
    assert np.array_equal(triton.answer, answer.logits)
    assert (None, "v") == (answer.degraded, answer.version)
    assert ["triton.client", "model.forward"] == told.names
    assert {"pool_wait_ns", "serialize_ns", "wait_ns", "deserialize_ns"} <= set(told.stages[0][1])
    assert {"traceparent": "parent-triton.client"} == triton.calls[0]["headers"]
    assert (1, 6) == triton.calls[0]["ids"].shape == triton.calls[0]["mask"].shape
    assert 0 == triton.calls[0]["mask"][0, 2:].sum()


@pytest.mark.parametrize(
    ("answer", "error", "because"),
    [
        (np.array([[np.nan, 0, 0]], dtype=np.float32), None, "wrong_answer"),
        (np.zeros((1, 4), dtype=np.float32), None, "wrong_answer"),
        (np.zeros((3, 3), dtype=np.float32), None, "wrong_answer"),
        (None, TritonError("timeout", "late"), "timeout"),
        (None, TritonError("stub_dead", "dead", 500), "stub_dead"),
        (None, TritonError("unloaded", "gone", 503), "unloaded"),
    ],
)
def test_whatever_is_wrong_the_model_in_process_answers(answer: Any, error: Any, because: str) -> None:
    """The answer says so, the failed stage has its status, and the reason is counted."""
    backend, triton = made()
    triton.answer, triton.error = answer, error
    told = Told()

    got: Answer = backend.infer(IDS, MASK, told, 1.0)

    assert (because, [1.0, 2.0, 0.0]) == (got.degraded, got.logits[0].tolist())
    assert ["fallback.cpu", "vectorizer"] == told.names[-2:]
    assert because == told.stages[-2][1]["because"]
    assert (because, True) == (told.stages[0][1]["error"], told.stages[0][1]["status"] >= 500)
    assert {because: 1} == backend.snapshot().unanswered


@pytest.mark.parametrize(
    ("error", "raised"), [(None, NotANumber), (TritonError("stub_dead", "dead", 500), BackendError)]
)
def test_another_version_raises_where_the_local_model_would_answer(error: Any, raised: type[Exception]) -> None:
    """It is asked by its number and tells its own name; its failures are not the other version's."""
    backend, triton = made()
    other = backend.beside("1")
    assert ("triton-1", None) == (other.version, other.infer(IDS, MASK, Told(), 1.0).degraded)
    assert "1" == triton.calls[-1]["version"]
    triton.answer, triton.error = np.array([[np.nan, 0, 0]], dtype=np.float32), error
    with pytest.raises(raised):
        other.infer(IDS, MASK, Told(), 1.0)
    assert {} == backend.snapshot().unanswered


def test_an_open_breaker_asks_nobody() -> None:
    """After failures in a row Triton is left alone."""
    backend, triton = made()
    triton.error = TritonError("timeout", "late")
    for _ in range(2):
        backend.infer(IDS, MASK, Told(), 1.0)
    told = Told()

    assert "breaker_open" == backend.infer(IDS, MASK, told, 1.0).degraded
    assert 2 == len(triton.calls)
    assert ["fallback.cpu", "vectorizer"] == told.names
    assert ("open", 1) == backend.snapshot()[:2]


def test_an_input_that_is_none_reaches_nobody_and_opens_nothing() -> None:
    """A wrong id is the caller's fault, not Triton's."""
    backend, triton = made()

    with pytest.raises(BackendError, match="outside"):
        backend.infer(np.array([[99]], dtype=np.int64), np.ones((1, 1), dtype=np.int64), Told(), 1.0)

    assert [] == triton.calls
    assert "closed" == backend.snapshot().breaker


@pytest.mark.parametrize(("left", "expected"), [(5.0, 0.4), (0.3, 0.2), (0.16, 0.06)])
def test_triton_gets_less_than_what_is_left(left: float, expected: float) -> None:
    """Something must remain for the model in process."""
    backend, triton = made(timeout_seconds=0.4)
    backend.infer(IDS, MASK, Told(), left)

    assert expected == pytest.approx(triton.calls[0]["seconds"])


@pytest.mark.parametrize("left", [0.149, 0.05, 0.0, -1.0])
def test_who_comes_late_is_answered_in_process_and_tells_the_breaker_nothing(left: float) -> None:
    """Triton is not asked, and nothing opens."""
    backend, triton = made()
    for _ in range(5):
        assert "late" == backend.infer(IDS, MASK, Told(), left).degraded

    assert [] == triton.calls
    assert ("closed", 0, {"late": 5}) == backend.snapshot()


def test_a_short_timeout_that_is_granted_whole_is_asked_and_counts() -> None:
    """The least time is no more than the timeout itself."""
    backend, triton = made(timeout_seconds=0.02)
    triton.error = TritonError("timeout", "late")
    for _ in range(2):
        backend.infer(IDS, MASK, Told(), 0.13)

    assert (2, "open") == (len(triton.calls), backend.snapshot().breaker)


@pytest.mark.parametrize(
    ("reason", "left", "expected"),
    [
        ("timeout", 0.49, "closed"),
        ("timeout", 0.51, "open"),
        ("no_connection", 5.0, "closed"),
        ("no_connection", 0.3, "closed"),
        ("refused", 0.3, "open"),
        ("stub_dead", 0.3, "open"),
    ],
)
def test_only_what_is_tritons_fault_opens_the_breaker(reason: str, left: float, expected: str) -> None:
    """Not a timeout that the caller's own budget made, nor a full pool of ours."""
    backend, triton = made(timeout_seconds=0.4)
    triton.error = TritonError(reason, reason)
    answers = [backend.infer(IDS, MASK, Told(), left).degraded for _ in range(2)]

    assert [reason] * 2 == answers
    assert expected == backend.snapshot().breaker


@pytest.mark.parametrize("reason", ["timeout", "no_connection"])
def test_a_try_of_the_half_open_breaker_that_says_nothing_lets_the_next_one_try(reason: str) -> None:
    """Else nobody would try again for the longest pause."""
    backend, triton = made()
    now = [100.0]
    backend.breaker = Breaker(1, clock=lambda: now[0])
    backend.breaker.failed()
    now[0] += 1.0
    triton.error = TritonError(reason, reason)
    assert "late" == backend.infer(IDS, MASK, Told(), 0.1).degraded
    assert reason == backend.infer(IDS, MASK, Told(), 0.3).degraded
    assert ("half_open", 1) == backend.snapshot()[:2]
    triton.error = None

    assert backend.infer(IDS, MASK, Told(), 0.3).degraded is None
    assert "closed" == backend.snapshot().breaker
