"""One run of a healthy twin: what looks like the failure and is none must raise no alert and no verdict."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from inferdeck.drill.evidence import save_json
from inferdeck.drill.program import Program
from inferdeck.drill.reports import fetch_reports, named_slug
from inferdeck.drill.run import Errand, caused, settle, triage_and_keep
from inferdeck.drill.scene import fresh_plan, open_scene, with_program
from inferdeck.drill.watch import false_alerts
from inferdeck.errors import CannotRun
from inferdeck.traffic import TrafficPlan

__all__ = ["run_twin"]


def run_twin(program: Program, run: int, folder: Path, errand: Errand) -> dict[str, Any]:
    """Run a program's healthy twin for as long as the failure would need to be detected.

    Args:
        program: The program.
        run: Number of the run, from 1.
        folder: The run's folder, fresh.
        errand: What all runs share.

    Returns:
        `slug`, `run`, `alerts` (names that fired), `verdicts` (slugs named, by alerts or blindly), `silent`.

    Raises:
        CannotRun: If the program has no twin, or the stack does not start.
    """
    if not program.hooks & {"twin_wrap", "twin_cause"}:
        raise CannotRun(f"{program.path.name} has no healthy twin", "write twin_wrap or twin_cause")
    plan, say = errand.plan, errand.say
    stack_plan = fresh_plan(errand.settings, errand.tools, folder / "state", program.workers)
    if "twin_wrap" in program.hooks:
        stack_plan = with_program(stack_plan, program, "twin_wrap")
    traffic = TrafficPlan(stack_plan.url("service_port"), plan.rate, 3600.0, seed=plan.seed + run)
    with open_scene(stack_plan, traffic, say) as scene:
        settle(scene, plan.baseline_seconds, say)
        say(f"twin of {program.slug} for {plan.twin_seconds:.0f} s")
        with caused(program, scene, twin=True):
            deadline = time.monotonic() + plan.twin_seconds
            while time.monotonic() < deadline:
                scene.stack.poll()
                scene.watch.look()
                time.sleep(1.0)
            answers = triage_and_keep(scene, folder, time.time(), None)
        named = [named_slug(report) for report in fetch_reports(stack_plan.url("triage_port"))]
        save_json(folder / "alerts.json", scene.watch.timeline)
    named.append(named_slug(answers["blind"]))
    alerts = sorted({event["alertname"] for event in false_alerts(scene.watch.timeline)})
    verdicts = sorted({slug for slug in named if slug})
    say(f"twin of {program.slug}: {'silent' if not alerts and not verdicts else ', '.join(alerts + verdicts)}")
    silent = not alerts and not verdicts
    found = {"slug": program.slug, "run": run, "alerts": alerts, "verdicts": verdicts, "silent": silent}
    save_json(folder / "twin.json", found)
    return found
