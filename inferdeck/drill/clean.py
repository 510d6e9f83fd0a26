"""`drill --clean`: healthy time, with all inside that only looks like trouble, raises nothing; then a failure is named.

The proof failure at the end runs in the same stack: it shows that the silence before it was not deafness.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferdeck.drill.clean_score import is_proven, not_clean, shipped_rules, surge_ratio
from inferdeck.drill.command import DrillRequest, choose_programs, fresh_runs_dir, summary
from inferdeck.drill.ear import Ear
from inferdeck.drill.evidence import keep_prometheus, save_json, save_metrics, save_truth
from inferdeck.drill.program import Program
from inferdeck.drill.run import RunPlan, Tools, caused, triage_and_keep, wait_for_alert
from inferdeck.drill.scene import Scene, fresh_plan, open_scene, with_program
from inferdeck.drill.silence import Act, silence_programs, timetable
from inferdeck.drill.watch import query_value
from inferdeck.http_get import Unreachable, get_json
from inferdeck.settings import StackSettings
from inferdeck.stack.state import make_private_folder
from inferdeck.traffic import TrafficPlan

__all__ = ["CleanPlan", "clean_plan", "run_clean"]

Say = Callable[[str], None]
PROOF = "event_loop_blocked"
# Their targets are away for a moment, which is no failed scrape of a healthy one.
RESTARTS = ("deploy_restart", "prometheus_restart")


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """How a clean time goes.

    Attributes:
        minutes: Its length.
        programs: What is done meanwhile, each with a `cause` alone.
        run: Rate, and the time limits of the proof.
    """

    minutes: float
    programs: Sequence[Program]
    run: RunPlan


def clean_plan(minutes: float, seed: int) -> CleanPlan:
    """Return the plan of a clean time with all programs of silence for which there is time.

    Raises:
        CannotRun: If this is no checkout, which alone has the programs.
    """
    return CleanPlan(minutes, silence_programs(), RunPlan(seed=seed, baseline_seconds=0.0))


def _perform(scene: Scene, ear: Ear, acts: Sequence[Act], seconds: float, say: Say) -> list[dict[str, Any]]:
    """Give every program its turn, and listen all the time.

    Returns:
        One entry for each turn: `slug`, `begin_s`, `seconds`, `requests`.
    """
    done = []
    for act in acts:
        ear.until(act.begin)
        begin, sent = ear.elapsed(), int(scene.traffic.tally().get("sent", 0))
        say(f"{begin:.0f} s: {act.program.slug}, {act.program.sentence or act.program.path.name}")
        with caused(act.program, scene):
            ear.ask_soon()
            ear.until(act.end)
        took = ear.elapsed() - begin
        # the tally is a second old at both ends
        sent = int(scene.traffic.tally().get("sent", 0)) - sent
        entry = {"slug": act.program.slug, "begin_s": round(begin, 1), "seconds": round(took, 1), "requests": sent}
        done.append(entry)
    ear.until(seconds)
    ear.ask()
    return done


def _failed_scrapes(url: str, seconds: float, at: float | None = None) -> int | None:
    """Return how many scrapes failed in *seconds* before a time, now by default: samples of `up` that are 0.

    None when Prometheus cannot tell.
    """
    window = f"{max(1, round(seconds))}s"
    # counted by Prometheus itself, over all jobs: `up` is 0 for each scrape that failed
    failed = query_value(url, f"sum(count_over_time(up[{window}])) - sum(sum_over_time(up[{window}]))", at)
    return None if failed is None else round(failed)


def scrapes(url: str, began_unix: float, acts: Sequence[dict[str, Any]]) -> dict[str, int | None]:
    """Return how many scrapes failed, those while something was restarted on purpose apart.

    Args:
        url: Base URL of Prometheus.
        began_unix: When the clean time began, in seconds.
        acts: As performed.

    Returns:
        `failed_scrapes`, `failed_scrapes_of_restarts`; None where Prometheus cannot tell.
    """
    every = _failed_scrapes(url, time.time() - began_unix)
    restarts = [
        _failed_scrapes(url, act["seconds"], began_unix + act["begin_s"] + act["seconds"])
        for act in acts
        if act["slug"] in RESTARTS
    ]
    of_restarts = None if None in restarts else sum(one or 0 for one in restarts)
    others = None if every is None or of_restarts is None else max(0, every - of_restarts)
    return {"failed_scrapes": others, "failed_scrapes_of_restarts": of_restarts}


def rules_loaded(url: str) -> int | None:
    """Return how many alerts a Prometheus has loaded, None when it cannot be asked."""
    try:
        groups = get_json(f"{url}/api/v1/rules?type=alert", 5.0)["data"]["groups"]
        return sum(len(group["rules"]) for group in groups)
    except (Unreachable, KeyError, TypeError):
        return None


def run_clean(
    plan: CleanPlan, request: DrillRequest, settings: StackSettings, tools: Tools, say: Say
) -> tuple[dict[str, Any], int]:
    """Run the clean time and the proof.

    Args:
        plan: How it goes.
        request: Seed and folder for the evidence.
        settings: Where the model is.
        tools: Programs of Prometheus.
        say: Gets one line for each step.

    Returns:
        The payload in the shape of `drill`, and the exit code: 1 after a false alert or verdict, a failed scrape, a
        missed proof, or when any of these cannot be told.

    Raises:
        CannotRun: If the stack does not start.
    """
    (proof,) = choose_programs(DrillRequest(slugs=(PROOF,)))
    runs_dir = fresh_runs_dir(request.out, settings.state_path)
    folder = make_private_folder(runs_dir / "clean")
    seconds, rate = plan.minutes * 60, plan.run.rate
    acts = timetable(seconds, plan.programs)
    stack_plan = with_program(fresh_plan(settings, tools, folder / "state"), proof, "wrap")
    traffic = TrafficPlan(stack_plan.url("service_port"), rate, seconds + 1800, seed=request.seed)
    with open_scene(stack_plan, traffic, say) as scene:
        began, ear = time.time(), Ear(scene)
        say(f"clean: {plan.minutes:g} minutes of healthy traffic at {rate:g} requests a second")
        done = _perform(scene, ear, acts, seconds, say)
        absent = {one.slug for one in plan.programs} - {act.program.slug for act in acts}
        clean = {
            **_measure(scene, ear, done, began, folder),
            "surge_ratio": surge_ratio(done, rate),
            "acts": done,
            "no_room_for": sorted(absent),
        }
        clean["proof"], answers = _prove(proof, scene, folder, plan.run, say)
        save_metrics({"exporter": f"{scene.handle.exporter_url}/metrics"}, folder / "metrics")
        save_json(folder / "alerts.json", scene.watch.timeline)
    keep_prometheus(folder)
    clean["not_clean"] = not_clean(clean)
    save_truth(folder, answers, {"clean": clean, "seed": request.seed})
    return summary(runs_dir, [], clean), int(bool(clean["not_clean"]))


def _measure(scene: Scene, ear: Ear, done: Sequence[dict[str, Any]], began: float, folder: Path) -> dict[str, Any]:
    """Return what was counted up to now, and keep what should not have been heard."""
    heard, claims = ear.alerts(), ear.claims()
    save_json(folder / "false_alerts.json", heard)
    save_json(folder / "false_verdicts.json", claims)
    tally, url = scene.traffic.tally(), scene.watch.prometheus_url
    return {
        "minutes": round(ear.elapsed() / 60, 2),
        "requests": int(tally.get("sent", 0)),
        "by_status": tally.get("by_status", {}),
        "rules_loaded": rules_loaded(url),
        "rules_shipped": shipped_rules(),
        **scrapes(url, began, done),
        "watchdog_firing": ear.watchdog,
        "false_alerts": len(heard),
        "false_verdicts": len(claims),
    }


def _prove(
    program: Program, scene: Scene, folder: Path, plan: RunPlan, say: Say
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the proof, and the answers of triage."""
    say(f"proof: {program.slug} in the same stack")
    with caused(program, scene):
        fired = wait_for_alert(scene, program.slug, plan)
        answers = triage_and_keep(scene, folder, time.time(), fired[0] if fired else None)
    alert = fired[0] if fired else None
    named = is_proven(program.slug, alert, answers)
    say(f"proof: {'named' if named else 'not named'}")
    return {"slug": program.slug, "named": named, "alert": alert}, answers
