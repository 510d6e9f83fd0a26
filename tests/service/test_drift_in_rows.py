"""What the exporter says of drift comes into the rows of answered requests, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from probes.control import write_control
from service.executor import Executor
from service.judgement import Judgement
from service.predict import Predictor
from service.recorder_link import RecorderLink, drift_of
from service.recording import NO_RECORD
from service.scheduler.dispatcher import Scheduler, SchedulerRules
from service.scheduler.lanes import LaneRules


@pytest.mark.parametrize(
    "control",
    [{}, {"drift": None}, {"drift": []}, {"drift": {"score": 0.4}}, {"drift": {"score": "0.4", "weight": 0.6}}],
)
def test_a_control_page_without_usable_figures_is_neutral(control: dict[str, Any]) -> None:
    """Another exporter's, an older one's, a damaged one's."""
    assert {} == drift_of(control)


def test_the_service_finds_what_the_control_page_says(tmp_path: Path) -> None:
    """As the recorder reads it; a page that has expired says nothing."""
    page = {"drift": {"feature": "tokens", "score": 0.4, "weight": 0.6}}
    write_control(tmp_path, page, ttl_s=30)
    read = json.loads((tmp_path / "control").read_text(encoding="utf-8"))
    assert {"data_drift_score": 0.4, "confidence_weight": 0.6} == drift_of(read)


def test_without_a_recorder_nothing_is_known() -> None:
    """The service answers all the same."""
    assert {} == RecorderLink(FastAPI(), enabled=False, config="", build="").drift()


@pytest.mark.anyio
async def test_an_answered_request_has_score_and_weight_in_its_row(make_backend: Any) -> None:
    """Beside the confidence that they are about."""
    executor = Executor(threads=1)
    executor.start()
    rules = SchedulerRules(LaneRules({"vip": 1, "normal": 1, "long": 1}, 1, 0), deadline_seconds=20)
    scheduler = Scheduler(executor, executor, rules, RecorderLink.batch_stage)
    written: dict[str, Any] = {}

    class Row:
        """A row that keeps what is set."""

        def stage(self, *_names: Any, **_attributes: Any) -> Any:
            """Enter no stage."""
            return NO_RECORD.stage("x")

        def set(self, **attributes: Any) -> None:
            """Keep the attributes."""
            written.update(attributes)

    predictor = Predictor(scheduler, lambda: {"data_drift_score": 0.4, "confidence_weight": 0.6})
    row: Any = Row()
    judgement = await predictor.judge(make_backend(), "good", row)
    executor.close()
    assert (0.4, 0.6) == (written["data_drift_score"], written["confidence_weight"])
    # the answer itself stays what the model says
    assert isinstance(judgement, Judgement)
    assert judgement.confidence == written["confidence"]
