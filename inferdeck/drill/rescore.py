"""Scores kept evidence again: the same rows, the same metrics, the same times, today's triage."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from inferdeck.drill.baselines import baseline_verdicts
from inferdeck.drill.clean_score import is_proven, not_clean
from inferdeck.drill.command import summary
from inferdeck.drill.evidence import copy_data_folder, hold_alive, read_json
from inferdeck.drill.packing import unpacked_runs
from inferdeck.drill.reports import named_slug
from inferdeck.drill.run import Tools
from inferdeck.drill.score import Fault, judge, missed
from inferdeck.drill.triage_call import ask
from inferdeck.drill.twin import silence_found
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get
from inferdeck.stack.ports import free_ports
from inferdeck.stack.process import log_tail, start, stop

__all__ = ["replayed_prometheus", "rescore_runs"]

Say = Callable[[str], None]
READY_SECONDS = 60.0
# what a ground truth must hold, by the kind of run
SILENT = ("slug", "run", "alerts", "watchdog_firing")
NEEDED = {
    "fault": ("slug", "layer", "simulated", "run", "alert", "detect_s", "named_s"),
    "twin": SILENT,
    "silence": SILENT,
    "clean": ("proof", "rules_loaded", "rules_shipped", "failed_scrapes", "false_alerts", "false_verdicts"),
}
ASKED = ("at_unix", "asked_unix", "rings_alive")


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
    """Score all runs of a drill again from their evidence: failures, twins, programs of silence, clean times.

    What fired and when, and what was counted, is as recorded; verdicts are computed anew. In a clean time that is the
    proof's: what triage was asked meanwhile it was asked about rows that have been overwritten since.

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
    with unpacked_runs(runs_dir) as folders:
        if not folders:
            raise CannotRun(f"no kept run in {runs_dir}", "give the `runs_dir` of a finished drill")
        if "prometheus" not in tools:
            raise CannotRun("prometheus was not found", "run `python -m inferdeck.tool_install`")
        return _rescored(runs_dir, folders, tools, say, blind_only=blind_only)


def _rescored(
    runs_dir: Path, folders: Sequence[Path], tools: Tools, say: Say, *, blind_only: bool
) -> tuple[dict[str, Any], int]:
    """Score the runs of some folders."""
    faults: list[Fault] = []
    silent: dict[str, list[dict[str, Any]]] = {"twin": [], "silence": []}
    clean: dict[str, Any] | None = None
    for folder in folders:
        kind, truth = _read_truth(folder / "ground_truth.json")
        if kind == "fault":
            faults.append(_fault(folder, truth, tools["prometheus"], say))
        elif kind == "clean":
            clean = _clean(folder, truth, tools["prometheus"], say)
        else:
            silent[kind].append(_silence(folder, truth, kind, tools["prometheus"], say))
    wrong = any(missed(fault, blind_only=blind_only) for fault in faults)
    wrong |= any(not one["silent"] for found in silent.values() for one in found)
    wrong |= clean is not None and bool(clean["not_clean"])
    apart = {"twins": silent["twin"], "silences": silent["silence"]}
    return summary(runs_dir, faults, clean) | apart, int(wrong)


def _read_truth(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the kind of a run and its ground truth.

    Raises:
        CannotRun: If it is damaged, or lacks what is needed to score the run again.
    """
    truth = read_json(path)
    try:
        kind = next(kind for kind in NEEDED if kind in truth)
        lacking = [key for key in ASKED if key not in truth] + [key for key in NEEDED[kind] if key not in truth[kind]]
    except (StopIteration, TypeError):
        kind, lacking = "", [f"one of {', '.join(NEEDED)}"]
    if lacking:
        raise CannotRun(f"{path} lacks {', '.join(lacking)}", "give the `runs_dir` of a finished drill")
    return kind, truth


def _ask_again(folder: Path, truth: dict[str, Any], alert: str | None, program: str) -> dict[str, Any]:
    """Return what today's triage says about kept rows and metrics, `told` and `blind`, and what simpler methods say."""
    rings, at, asked = folder / "rings", truth["at_unix"], truth["asked_unix"]
    with replayed_prometheus(folder / "prometheus", program) as url, hold_alive(rings, truth["rings_alive"]):
        told = ask(url, rings, at, alert, lambda: asked) if alert else None
        answers = {"told": told, "blind": ask(url, rings, at, None, lambda: asked)}
        begin = truth.get("effect_begin_unix")
        # a clean time has no onset, and the first evidence did not tell it
        simpler = baseline_verdicts(url, begin, at, read_json(folder / "alerts.json")) if begin is not None else {}
        return answers | {"baselines": simpler}


def _fault(folder: Path, truth: dict[str, Any], program: str, say: Say) -> Fault:
    kept = truth["fault"]
    plain = {key: kept[key] for key in NEEDED["fault"]}
    # evidence of earlier versions does not tell
    fault = Fault(**plain, fired_before=tuple(kept.get("fired_before", ())))
    answers = _ask_again(folder, truth, fault.alert, program)
    told, blind = (judge(answers[name], fault.slug) for name in ("told", "blind"))
    say(f"{folder.name}, {fault.slug}: {told.verdict or 'nothing'} (told only the time: {blind.verdict or 'nothing'})")
    # the time is the recorded one, and belongs to a verdict
    named_s = None if told.abstained else fault.named_s
    return replace(fault, named_s=named_s, told=told, blind=blind, baselines=answers["baselines"])


def _silence(folder: Path, truth: dict[str, Any], kind: str, program: str, say: Say) -> dict[str, Any]:
    kept = truth[kind]
    blind = named_slug(_ask_again(folder, truth, None, program)["blind"])
    say(f"{folder.name}, {kind} {kept['slug']}: {blind or 'nothing'}")
    return silence_found(
        kept["slug"],
        kept["run"],
        kept["alerts"],
        [*truth.get("claimed", ()), blind],
        watchdog_firing=kept["watchdog_firing"],
    )


def _clean(folder: Path, truth: dict[str, Any], program: str, say: Say) -> dict[str, Any]:
    clean: dict[str, Any] = truth["clean"]
    proof = clean["proof"]
    named = is_proven(proof["slug"], proof["alert"], _ask_again(folder, truth, proof["alert"], program))
    say(f"{folder.name}, proof {proof['slug']}: {'named' if named else 'not named'}")
    clean["proof"] = proof | {"named": named}
    return clean | {"not_clean": not_clean(clean)}
