"""Scores kept evidence again: the same rows, the same metrics, the same times, today's triage."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from inferdeck.drill.command import summary
from inferdeck.drill.evidence import copy_data_folder, hold_alive, read_json
from inferdeck.drill.run import Tools
from inferdeck.drill.score import Fault, judge, missed
from inferdeck.drill.triage_call import ask
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get
from inferdeck.stack.ports import free_ports
from inferdeck.stack.process import log_tail, start, stop

__all__ = ["replayed_prometheus", "rescore_runs"]

Say = Callable[[str], None]
READY_SECONDS = 60.0


@contextmanager
def replayed_prometheus(data: Path, program: str) -> Iterator[str]:
    """Start a Prometheus over a copy of a kept data folder; it scrapes nothing and evaluates nothing.

    Args:
        data: Kept data folder; it is not touched.
        program: Path of the prometheus binary.

    Yields:
        Its base URL.

    Raises:
        CannotRun: If it does not become ready.
    """
    with tempfile.TemporaryDirectory(prefix="inferdeck-rescore-") as scratch:
        folder = Path(scratch)
        # a copy: a Prometheus compacts and truncates what it is started on
        copy_data_folder(data, folder / "data")
        # no scrapes and no rules: nothing new may enter what is scored
        (folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
        (port,) = free_ports(1)
        url = f"http://127.0.0.1:{port}"
        argv = (
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            # evidence may be older than any usual retention
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        )
        record, child = start("prometheus", argv, log=folder / "prometheus.log")
        try:
            _wait_ready(f"{url}/-/ready", folder / "prometheus.log", child.poll)
            yield url
        finally:
            stop(record, grace_seconds=10.0, reap=child.poll)


def _wait_ready(url: str, log: Path, ended: Callable[[], int | None]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            if get(url, 1.0)[0] == 200:
                return
        except Unreachable:
            if ended() is not None:
                break
        time.sleep(0.1)
    raise CannotRun(f"Prometheus did not start over the kept data: {' | '.join(log_tail(log, 2))}")


def rescore_runs(runs_dir: Path, tools: Tools, say: Say, *, blind_only: bool) -> tuple[dict[str, Any], int]:
    """Score all runs of a drill again from their evidence.

    Times of detection are those recorded; verdicts are computed anew.

    Args:
        runs_dir: The drill's `runs_dir`.
        tools: Programs of Prometheus.
        say: Gets one line for each run.
        blind_only: Judge only the blind triage.

    Returns:
        The payload in the shape of `drill`, and the exit code.

    Raises:
        CannotRun: If there is no evidence, or Prometheus is missing.
    """
    runs_dir = runs_dir.expanduser().absolute()
    folders = sorted(path.parent for path in runs_dir.glob("*/ground_truth.json"))
    if not folders:
        raise CannotRun(f"no kept run in {runs_dir}", "give the `runs_dir` of a finished drill of failures")
    if "prometheus" not in tools:
        raise CannotRun("prometheus was not found", "run `python -m inferdeck.tool_install`")
    faults = []
    for folder in folders:
        fault = _rescore(folder, tools["prometheus"])
        say(
            f"{folder.name}, {fault.slug}: {fault.told.verdict or 'nothing'} "
            f"(told only the time: {fault.blind.verdict or 'nothing'})"
        )
        faults.append(fault)
    clean = read_json(runs_dir / "clean.json") if (runs_dir / "clean.json").is_file() else None
    return summary(runs_dir, faults, clean), int(any(missed(fault, blind_only=blind_only) for fault in faults))


def _rescore(folder: Path, program: str) -> Fault:
    truth = read_json(folder / "ground_truth.json")
    try:
        kept, at, asked, alive = truth["fault"], truth["at_unix"], truth["asked_unix"], truth["rings_alive"]
        plain = {key: kept[key] for key in ("slug", "layer", "simulated", "run", "alert", "detect_s", "named_s")}
    except (KeyError, TypeError) as error:
        raise CannotRun(
            f"{folder / 'ground_truth.json'} lacks {error}", "give the `runs_dir` of a finished drill"
        ) from error
    # evidence of earlier versions does not tell
    fault = Fault(**plain, fired_before=tuple(kept.get("fired_before", ())))
    rings = folder / "rings"
    with replayed_prometheus(folder / "prometheus", program) as url, hold_alive(rings, alive):
        told = ask(url, rings, at, fault.alert, lambda: asked) if fault.alert else None
        blind = ask(url, rings, at, None, lambda: asked)
    judged = judge(told, fault.slug)
    # the time is the recorded one, and belongs to a verdict
    named = None if judged.abstained else fault.named_s
    return replace(fault, named_s=named, told=judged, blind=judge(blind, fault.slug))
