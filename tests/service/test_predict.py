"""From logits to a judgement, and who may write to the row until when."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.executor import Executor
from service.judgement import Judgement
from service.postprocess.confidence import softmax
from service.predict import Predictor
from service.recorder_link import RecorderLink
from service.recording import Attribute, StageHandle
from service.scheduler.dispatcher import Scheduler, SchedulerRules
from service.scheduler.lanes import LaneRules

LOGITS = st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3)


class ListedRecord:
    """A row that lists what is written to it."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.reason = ""

    @contextmanager
    def stage(self, name: str, /, **_attributes: Attribute) -> Iterator[StageHandle]:
        """List the stage."""
        self.entered.append(name)
        yield self

    def set(self, **attributes: Attribute) -> None:
        """Take the attributes."""

    def refused(self, reason: str) -> None:
        """Keep the reason."""
        self.reason = reason

    def degraded(self, reason: str) -> None:
        """Keep the reason."""
        self.reason = reason

    def low_quality(self) -> None:
        """Take the mark."""


@given(LOGITS, st.floats(0.01, 100))
def test_softmax_is_a_distribution_that_keeps_the_order(logits: list[float], temperature: float) -> None:
    """Finite logits of any size give probabilities that sum to one, the largest at the largest."""
    probabilities = softmax(logits, temperature)
    assert all(0.0 <= p <= 1.0 for p in probabilities)
    assert math.fsum(probabilities) == pytest.approx(1.0)
    assert probabilities[logits.index(max(logits))] == max(probabilities)


def test_softmax_divides_by_the_temperature() -> None:
    """A temperature of two halves the logits."""
    assert softmax([0.0, 2.0, 4.0], 2.0) == pytest.approx(softmax([0.0, 1.0, 2.0], 1.0))
    assert softmax([0.0, math.log(2), math.log(5)], 1.0) == pytest.approx([0.125, 0.25, 0.625])


@pytest.mark.anyio
async def test_late_work_enters_no_stage_of_an_answered_request(make_backend: Any, until: Any) -> None:
    """Once the answer is out the open slot may belong to another request, so the work keeps away from it."""
    gate, entered = threading.Event(), threading.Event()
    backend = make_backend()
    encode = backend.encode

    def held(text: str) -> Any:
        entered.set()
        gate.wait(20)
        return encode(text)

    backend.encode = held
    executor = Executor(threads=1)
    executor.start()
    record = ListedRecord()
    rules = SchedulerRules(LaneRules({"vip": 1, "normal": 1, "long": 1}, 1, 0), deadline_seconds=0.05)
    scheduler = Scheduler(executor, executor, rules, RecorderLink.batch_stage)
    judgement = await Predictor(scheduler).judge(backend, "good", record)
    assert entered.is_set()
    gate.set()
    await until(lambda: executor.pending == 0)
    executor.close()
    assert isinstance(judgement, Judgement)
    assert (judgement.degraded, record.reason) == ("deadline", "deadline")
    assert backend.forwards == 1
    assert record.entered == ["scheduler.dispatch", "sentiment.tokenizer"]
