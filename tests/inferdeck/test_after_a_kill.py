"""A worker is killed while it has a request in every stage: each is told with the stage that it had reached."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from exporters.spans import STAGES
from inferdeck.look_up import Query, look_up
from runbooks.engine import triage
from runbooks.row_source import RowSource
from runbooks.sources import Sources

# Never ends by itself, and holds each request open, as a worker in the middle of its work does.
WORKER = """
import json, sys, time
from types import SimpleNamespace
from probes import Recorder, RecorderSettings
recorder = Recorder.open(sys.argv[1], "reviews", settings=RecorderSettings())
held = []
for number in range(40):
    scope = {"type": "http", "method": "POST", "route": SimpleNamespace(path="/v1/sentiment"), "headers": ()}
    recorder.finish(recorder.begin(scope), scope, 200, False)
    time.sleep(0.05)
for number, stage in enumerate(json.loads(sys.argv[2])):
    scope = {"type": "http", "method": "POST", "route": SimpleNamespace(path="/v1/sentiment"),
             "headers": ((b"x-session-id", b"killed-in-stage-%03d" % number),)}
    begun = recorder.begin(scope)
    if stage:
        step = begun[1].stage(stage)
        step.__enter__()
        held.append((begun, step))
time.sleep(1.5)
print("held", flush=True)
time.sleep(120)
"""


def killed(ring_dir: Path, stages: list[str]) -> None:
    """Run a worker until it holds a request in each stage, and kill it."""
    argv = [sys.executable, "-c", WORKER, str(ring_dir), json.dumps(stages)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert "held" == child.stdout.readline().strip()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        child.stdout.close()


def test_no_started_request_is_lost_whatever_stage_it_was_in(tmp_path: Path) -> None:
    """Those of no stage yet included: `trace` finds every one, `--errors` all together, and triage counts them."""
    stages = ["", *STAGES]
    killed(tmp_path / "rows", stages)

    told: dict[str, Any] = {}
    for number, stage in enumerate(stages):
        found = look_up(Query(session=f"killed-in-stage-{number:03d}"), tmp_path / "rows")
        [told[stage]] = found["traces"]
    together = look_up(Query(errors=True), tmp_path / "rows")["traces"]
    # five seconds of silence are what a dead worker is told by
    later = time.time() + 8.0
    result = triage(Sources(None, RowSource(tmp_path / "rows")), at=later, clock=lambda: later)

    assert dict(zip(stages, stages, strict=True)) == {stage: trace["last_stage"] for stage, trace in told.items()}
    assert {("unfinished", "never_ended")} == {(trace["status"], trace["outcome"]) for trace in told.values()}
    assert len(stages) == len(together)
    [seen] = [step for step in result["evidence"] if step["step"] == "liveness.unfinished_requests"]
    assert float(len(stages)) == seen["value"], seen
    assert seen["detail"].startswith("started and never ended: 1 in ")
