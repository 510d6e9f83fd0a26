"""One run of what looks like a failure and is none, a healthy twin or a program of silence: it must raise nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inferdeck.drill.drawing import drawn_plan
from inferdeck.drill.ear import Ear
from inferdeck.drill.evidence import keep_prometheus, save_json, save_truth
from inferdeck.drill.program import Program
from inferdeck.drill.reports import named_slug
from inferdeck.drill.run import Errand, caused, settle, triage_and_keep, usual
from inferdeck.drill.scene import open_scene, planned
from inferdeck.errors import CannotRun
from inferdeck.traffic import TrafficPlan

__all__ = ["run_silent", "silence_found"]


def run_silent(program: Program, run: int, folder: Path, errand: Errand) -> dict[str, Any]:
    """Run a failure's healthy twin, or a program of silence, for as long as a failure would need to be detected.

    Args:
        program: The program.
        run: Number of the run, from 1.
        folder: The run's folder, fresh.
        errand: What all runs share.

    Returns:
        `slug`, `run`, `alerts` (names that fired), `verdicts` (slugs named, by alerts or blindly), `watchdog_firing`,
        `silent`.

    Raises:
        CannotRun: If the program has no twin, or the stack does not start.
    """
    twin = not program.healthy
    if twin and not program.hooks & {"twin_wrap", "twin_cause"}:
        raise CannotRun(f"{program.path.name} has no healthy twin", "write twin_wrap or twin_cause")
    say, seed = errand.say, errand.plan.seed + run
    plan = drawn_plan(errand.plan, seed, program.path)
    wrap = "twin_wrap" if twin else "wrap"
    stack_plan = planned(program, errand.settings, errand.tools, folder / "state", wrap, seed=seed)
    what = f"twin of {program.slug}" if twin else program.slug
    traffic = TrafficPlan(stack_plan.url("service_port"), plan.rate, 3600.0, seed=seed)
    with open_scene(stack_plan, traffic, say) as scene, usual(program, scene, seed=seed):
        early = [] if program.at_start else settle(scene, plan.baseline_seconds, say)
        ear = Ear(scene)
        say(f"{what} for {plan.twin_seconds:.0f} s")
        with caused(program, scene, twin=twin, seed=seed):
            ear.until(plan.twin_seconds)
            answers = triage_and_keep(scene, folder, time.time(), None)
        heard, claims = early + ear.alerts(), ear.claims()
        save_json(folder / "alerts.json", scene.watch.timeline)
    keep_prometheus(folder)
    claimed = [named_slug({"verdict": claim}) or named_slug(claim) for claim in claims]
    alerts = [str(event["alertname"]) for event in heard]
    found = silence_found(
        program.slug, run, alerts, [*claimed, named_slug(answers["blind"])], watchdog_firing=ear.watchdog
    )
    said = ", ".join(found["alerts"] + found["verdicts"]) or "the watchdog was never seen firing"
    say(f"{what}: {'silent' if found['silent'] else said}")
    kind = "twin" if twin else "silence"
    save_json(folder / f"{kind}.json", found)
    # what was claimed meanwhile stays claimed; the last question can be asked again
    save_truth(folder, answers, {kind: found, "claimed": sorted({slug for slug in claimed if slug})})
    return found


def silence_found(
    slug: str, run: int, alerts: Iterable[str], verdicts: Iterable[str | None], *, watchdog_firing: bool
) -> dict[str, Any]:
    """Return what was heard in a run in which nothing may be.

    Args:
        slug: The program.
        run: Number of the run.
        alerts: Names of the alerts that fired.
        verdicts: Slugs that triage named, None where it abstained.
        watchdog_firing: Whether the alert that always fires was seen: without it nothing could have been heard.
    """
    found = {"alerts": sorted(set(alerts)), "verdicts": sorted({one for one in verdicts if one})}
    silent = watchdog_firing and not any(found.values())
    return {"slug": slug, "run": run, **found, "watchdog_firing": watchdog_firing, "silent": silent}
