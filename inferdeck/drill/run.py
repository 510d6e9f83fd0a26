"""One run of one failure: baseline, cause, detection, triage, evidence."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferdeck.drill.baselines import baseline_verdicts
from inferdeck.drill.drawing import draw, drawn_plan
from inferdeck.drill.evidence import copy_rings, hold_alive, keep_prometheus, save_json, save_metrics, save_truth
from inferdeck.drill.program import Program, load_module
from inferdeck.drill.reports import await_report, named_slug
from inferdeck.drill.scene import Scene, open_scene, planned
from inferdeck.drill.score import Fault, credited, judge
from inferdeck.drill.triage_call import ask
from inferdeck.drill.watch import heard
from inferdeck.errors import CannotRun
from inferdeck.http_get import Unreachable, get
from inferdeck.result import iso_utc
from inferdeck.settings import StackSettings
from inferdeck.stack.process import start, stop
from inferdeck.traffic import TrafficPlan

__all__ = [
    "Errand",
    "RunPlan",
    "Tools",
    "caused",
    "judged",
    "layer_of",
    "require_namable",
    "run_failure",
    "settle",
    "triage_and_keep",
    "usual",
    "wait_for_alert",
]

Say = Callable[[str], None]
# how long the report that the alert starts may take: group wait, delivery, 15 s of triage, and room
REPORT_SECONDS = 40.0
Tools = dict[str, str]


@dataclass(frozen=True)
class RunPlan:
    """How a run goes.

    Attributes:
        rate: Traffic in requests a second.
        baseline_seconds: Healthy traffic before the cause; the shipped rules look back a minute, and triage compares.
        detect_timeout_seconds: How long a matching alert may take.
        twin_seconds: How long a healthy twin runs: the longest detection of the shipped rules, and room.
        notify_timeout_seconds: How long Alertmanager may take after Prometheus fires.
        seed: Draws sessions, gaps and reviews, how strong a cause is, and part of rate and healthy time.
    """

    rate: float = 20.0
    baseline_seconds: float = 60.0
    detect_timeout_seconds: float = 180.0
    twin_seconds: float = 100.0
    notify_timeout_seconds: float = 30.0
    seed: int = 1


def layer_of(slug: str) -> str:
    """Return the layer of a failure.

    Raises:
        CannotRun: If no failure is called *slug*.
    """
    from alerts.slugs import FAILURES

    if slug not in FAILURES:
        raise CannotRun(f"no failure is called {slug!r}", f"one of: {', '.join(sorted(FAILURES))}")
    return FAILURES[slug]


def require_namable(slug: str) -> None:
    """Refuse a slug that triage cannot name, since no runbook has it: the drill would be a miss whatever happens.

    Raises:
        CannotRun: If it is none, or a failure without a page.
    """
    from alerts.slugs import FAILURES
    from runbooks.pages import load_pages

    namable = sorted(FAILURES.keys() & load_pages().keys())
    if slug not in namable:
        what = f"no runbook names {slug!r} yet" if slug in FAILURES else f"no failure is called {slug!r}"
        raise CannotRun(what, f"one of: {', '.join(namable)}")


@contextmanager
def caused(program: Program, scene: Scene, *, twin: bool = False, seed: int | None = None) -> Iterator[None]:
    """Cause a program's failure while the body runs.

    Args:
        program: The program; a `wrap` of it is already around the service's app.
        scene: The running stack.
        twin: Cause the healthy twin instead.
        seed: Draws the numbers that the program lets vary.

    Raises:
        CannotRun: If the program fails.
    """
    prefix = "twin_" if twin else ""
    with ExitStack() as causes:
        # armed first: a service that the cause starts again shall find it on
        if f"{prefix}wrap" in program.hooks:
            # registered before it exists: a signal between the two lines must not leave the failure on
            causes.callback(scene.flag.unlink, missing_ok=True)
            scene.flag.touch(mode=0o600)
        if f"{prefix}cause" in program.hooks:
            # entered last of all preparations: from here on the service suffers
            _enter(causes, program, f"{prefix}cause", scene, seed)
        if program.is_script and not twin:
            causes.enter_context(_script(program, scene))
        yield


@contextmanager
def usual(program: Program, scene: Scene, *, seed: int | None = None) -> Iterator[None]:
    """Let a program set up what belongs to the run's machine, well or not, while the body runs.

    Args:
        program: The program.
        scene: The running stack.
        seed: Draws the numbers that the program lets vary.

    Raises:
        CannotRun: If the program fails.
    """
    with ExitStack() as set_up:
        if "usual" in program.hooks:
            _enter(set_up, program, "usual", scene, seed)
        yield


def _enter(stack: ExitStack, program: Program, hook: str, scene: Scene, seed: int | None) -> None:
    """Enter a program's context manager.

    Raises:
        CannotRun: If the program fails.
    """
    try:
        stack.enter_context(getattr(load_module(program.path, seed=seed), hook)(scene.handle))
    except CannotRun:
        raise
    except Exception as error:
        raise CannotRun(f"the program {program.path.name} fails: {type(error).__name__}: {error}") from error


@contextmanager
def _script(program: Program, scene: Scene) -> Iterator[None]:
    handle = scene.handle
    environment = {
        **os.environ,
        "INFERDECK_SERVICE_URL": handle.service_url,
        "INFERDECK_SERVICE_PID": str(next(iter(handle.service_pids), "")),
        "INFERDECK_STATE_DIR": str(handle.state_dir),
    }
    argv = (sys.executable, str(program.path)) if program.path.suffix == ".py" else (str(program.path),)
    log = scene.plan.state_dir / "logs" / "program.log"
    record, child = start("program", argv, log=log, env=environment, cwd=program.path.parent)
    try:
        yield
    finally:
        stop(record, grace_seconds=5.0, reap=child.poll)


def settle(scene: Scene, seconds: float, say: Say) -> list[dict[str, Any]]:
    """Let healthy traffic run, and make sure that it arrives.

    Args:
        scene: The running stack.
        seconds: How long.
        say: Gets one line.

    Returns:
        The alerts, meta ones apart, that fired already: what follows can prove nothing about them.

    Raises:
        CannotRun: If nothing is answered, or Prometheus is silent: a drill on a dead service would prove nothing.
    """
    say(f"baseline: {seconds:.0f} s of healthy traffic at {scene.base_rate:g} requests a second")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        scene.stack.poll()
        scene.watch.look()
        time.sleep(min(1.0, max(0.0, deadline - time.monotonic())))
    # a second old at most, and the baseline is longer than that
    answered = scene.traffic.tally().get("by_status", {})
    if not answered.get("200"):
        raise CannotRun(
            f"the service answers no request of the baseline: {answered}", f"read {scene.plan.state_dir}/logs"
        )
    early = heard(scene.watch, seconds)
    if early:
        say(f"a miss: {', '.join(sorted({str(event['alertname']) for event in early}))} fired before the cause")
    return early


def wait_for_alert(scene: Scene, slug: str, plan: RunPlan) -> tuple[str, float] | None:
    """Wait until an alert with the slug fires in Prometheus, then until Alertmanager has it.

    Args:
        scene: The running stack.
        slug: What the alert's `slug` label must say.
        plan: The time limits.

    Returns:
        The alert's name and when it was seen firing in Prometheus, in seconds; None when none fires in time.
    """
    deadline = time.monotonic() + plan.detect_timeout_seconds
    while time.monotonic() < deadline:
        scene.stack.poll()
        for labels in scene.watch.look():
            if labels.get("slug") == slug:
                seen = time.time()
                _wait_notified(scene, slug, plan.notify_timeout_seconds)
                return labels["alertname"], seen
        time.sleep(0.5)
    return None


def _wait_notified(scene: Scene, slug: str, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        scene.watch.look()
        if any(labels.get("slug") == slug for labels in scene.watch.notified()):
            return True
        time.sleep(0.25)
    return False


def triage_and_keep(scene: Scene, folder: Path, at: float, alert: str | None) -> dict[str, Any]:
    """Freeze the rows, ask triage told and blind, keep the answers.

    Triage reads the frozen copies, so that a rescore reads the very same bytes.

    Args:
        scene: The running stack.
        folder: The run's folder.
        at: Time to look at, in seconds.
        alert: Name of the alert that fired; None asks only the blind question.

    Returns:
        `told` and `blind` (results of triage, told None without an alert), `named_unix` (when the first was there),
        `at_unix`, `asked_unix` (times that a rescore gives again), `alive` (owners alive).
    """
    rings = folder / "rings"
    alive = copy_rings(scene.plan.ring_dir, rings)
    url = scene.plan.url("prometheus_port")
    asked = time.time()
    with hold_alive(rings, alive):
        told = ask(url, rings, at, alert, lambda: asked) if alert else None
        named = time.time()
        blind = ask(url, rings, at, None, lambda: asked)
        if told is None:
            named = time.time()
    for name, answer in (("told", told), ("blind", blind)):
        if answer is not None:
            save_json(folder / f"triage_{name}.json", answer)
    return {"told": told, "blind": blind, "named_unix": named, "at_unix": at, "asked_unix": asked, "alive": alive}


@dataclass(frozen=True)
class Errand:
    """What is the same for all runs of one drill.

    Attributes:
        settings: Where the model is.
        tools: Programs of Prometheus.
        plan: How each run goes.
        say: Gets one line for each step.
    """

    settings: StackSettings
    tools: Tools
    plan: RunPlan
    say: Say


def run_failure(program: Program, run: int, folder: Path, errand: Errand) -> Fault:
    """Run one failure from a fresh stack to kept evidence.

    Args:
        program: What causes it.
        run: Number of the run, from 1.
        folder: The run's folder, fresh.
        errand: What all runs share.

    Raises:
        CannotRun: If the stack or the program does not start.
    """
    seed, say = errand.plan.seed + run, errand.say
    plan = drawn_plan(errand.plan, seed, program.path)
    errand = replace(errand, plan=plan)
    stack_plan = planned(program, errand.settings, errand.tools, folder / "state", "wrap", seed=seed)
    traffic = TrafficPlan(stack_plan.url("service_port"), plan.rate, 3600.0, seed=seed)
    with open_scene(stack_plan, traffic, say) as scene, usual(program, scene, seed=seed):
        played = _play(program, scene, folder, errand, seed)
    keep_prometheus(folder)
    fault, answers, begin = judged(program, run, played), played["answers"], played["begin"]
    truth = {
        "fault": fault.to_json(),
        "program": program.path.name,
        "seed": seed,
        "drawn": draw(program.ranges, seed, program.path.stem)
        | {"rate": plan.rate, "baseline_seconds": plan.baseline_seconds},
        "effect_begin": iso_utc(begin),
        "effect_begin_unix": begin,
    }
    save_truth(folder, answers, truth | played["measured"])
    say(f"named: {fault.told.verdict or 'nothing'} (told only the time: {fault.blind.verdict or 'nothing'})")
    return fault


def judged(program: Program, run: int, played: dict[str, Any]) -> Fault:
    """Return a run as scored, from what was seen while it was played.

    Args:
        program: What caused it.
        run: Number of the run, from 1.
        played: As `_play` returns it.
    """
    begin, fired, answers = played["begin"], played["fired"], played["answers"]
    slug = program.slug
    told = judge(answers["told"], slug)
    return Fault(
        slug=slug,
        layer=layer_of(slug),
        simulated=program.simulated,
        run=run,
        alert=fired[0] if fired else None,
        detect_s=round(fired[1] - begin, 2) if fired else None,
        named_s=None if told.abstained else round(answers["named_unix"] - begin, 2),
        told=told,
        blind=judge(answers["blind"], slug),
        fired_before=tuple(sorted({str(event["alertname"]) for event in played["early"]})),
        baselines=played["baselines"],
    )


def _play(program: Program, scene: Scene, folder: Path, errand: Errand, seed: int) -> dict[str, Any]:
    """Play one run on a running scene: baseline, cause, alert, triage; keep what it shows."""
    plan, say = errand.plan, errand.say
    early = settle(scene, plan.baseline_seconds, say)
    # before the cause is entered: what a cause takes to act counts as time to detect, never the other way round
    begin = time.time()
    say(f"cause: {program.slug}, {program.sentence or program.path.name}")
    with caused(program, scene, seed=seed):
        fired = credited(wait_for_alert(scene, program.slug, plan), early, program.slug)
        say(f"alert: {fired[0]} after {fired[1] - begin:.1f} s" if fired else "alert: none in time")
        # the failure is still on: triage sees what a person called at this moment would see
        answers = triage_and_keep(scene, folder, time.time(), fired[0] if fired else None)
        simpler = baseline_verdicts(scene.plan.url("prometheus_port"), begin, answers["at_unix"], scene.watch.timeline)
        triage_url = scene.plan.url("triage_port")
        started = await_report(triage_url, program.slug, REPORT_SECONDS) if fired else None
    if started is not None:
        save_json(folder / "report_by_alert.json", started)
    handle = scene.handle
    pages = {"exporter": f"{handle.exporter_url}/metrics", "service": f"{handle.admin_url}/metrics"}
    save_metrics(pages, folder / "metrics")
    save_json(folder / "alerts.json", scene.watch.timeline)
    measured = {
        "traffic": scene.traffic.stop(),
        "ready_at_end": _health(scene),
        "report_names": named_slug(started) if started else None,
    }
    found = {"begin": begin, "early": early, "fired": fired, "answers": answers, "measured": measured}
    return found | {"baselines": simpler}


def _health(scene: Scene) -> dict[str, bool]:
    found = {}
    for part in scene.stack.state.parts:
        try:
            found[part.name] = get(part.health_url, 2.0)[0] == 200
        except Unreachable:
            found[part.name] = False
    return found
