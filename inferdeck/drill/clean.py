"""`drill --clean`: healthy time with a tenfold surge inside raises no alert and no verdict, then a failure is named.

The proof failure at the end runs in the same stack: it shows that the silence before it was not deafness.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferdeck.drill.command import DrillRequest, choose_programs, fresh_runs_dir, summary
from inferdeck.drill.evidence import save_json, save_metrics
from inferdeck.drill.program import Program
from inferdeck.drill.reports import fetch_reports, named_slug
from inferdeck.drill.run import RunPlan, Tools, caused, triage_and_keep, wait_for_alert
from inferdeck.drill.scene import Scene, fresh_plan, open_scene, with_program
from inferdeck.drill.score import judge
from inferdeck.drill.triage_call import ask
from inferdeck.drill.watch import false_alerts, query_value
from inferdeck.http_get import get_json
from inferdeck.settings import StackSettings
from inferdeck.stack.state import make_private_folder
from inferdeck.traffic import TrafficPlan

__all__ = ["SURGE_RATIO", "run_clean"]

Say = Callable[[str], None]
SURGE_RATIO = 10.0
PROOF = "event_loop_blocked"
# triage is asked about the present as often as a nervous person would
ASK_EVERY_SECONDS = 45.0


@dataclass
class Silence:
    """What was heard in the clean time."""

    verdicts: list[dict[str, Any]]
    watchdog: bool = False


def surge_window(seconds: float) -> tuple[float, float]:
    """Return begin and end of the surge within a clean time: a quarter of it, after its first third."""
    return seconds / 3, seconds / 3 + seconds / 4


def _listen(scene: Scene, seconds: float, rate: float, say: Say) -> Silence:
    silence = Silence([])
    begin = time.monotonic()
    surge_from, surge_to = surge_window(seconds)
    surging, next_ask = False, ASK_EVERY_SECONDS
    while (elapsed := time.monotonic() - begin) < seconds:
        if (surge := surge_from <= elapsed < surge_to) != surging:
            surging = surge
            say(f"{elapsed:.0f} s: {'a surge of ten times begins' if surge else 'the surge is over'}")
            scene.traffic.set_rate(rate * (SURGE_RATIO if surge else 1.0))
        scene.stack.poll()
        firing = scene.watch.look()
        # a watchdog that never fired would mean that nothing could have been heard
        silence.watchdog |= any(labels.get("alertname") == "Watchdog" for labels in firing)
        if elapsed >= next_ask:
            next_ask += ASK_EVERY_SECONDS
            _ask_now(scene, silence)
        time.sleep(1.0)
    _ask_now(scene, silence)
    return silence


def _ask_now(scene: Scene, silence: Silence) -> None:
    answer = ask(scene.plan.url("prometheus_port"), scene.plan.ring_dir, time.time(), None, time.time)
    if not answer["abstained"]:
        silence.verdicts.append({"from": "blind", **answer["verdict"]})


def _failed_scrapes(url: str, seconds: float) -> int:
    """Return how many scrapes failed in the last *seconds*: samples of `up` that are 0."""
    window = f"{max(1, round(seconds))}s"
    # counted by Prometheus itself, over all jobs: `up` is 0 for each scrape that failed
    failed = query_value(url, f"sum(count_over_time(up[{window}])) - sum(sum_over_time(up[{window}]))")
    return round(failed or 0.0)


def _rules_loaded(url: str) -> int:
    groups = get_json(f"{url}/api/v1/rules?type=alert", 5.0)["data"]["groups"]
    return sum(len(group["rules"]) for group in groups)


def run_clean(
    minutes: float, request: DrillRequest, settings: StackSettings, tools: Tools, say: Say
) -> tuple[dict[str, Any], int]:
    """Run the clean time and the proof.

    Args:
        minutes: Length of the clean time.
        request: Seed and folder for the evidence.
        settings: Where the model is.
        tools: Programs of Prometheus.
        say: Gets one line for each step.

    Returns:
        The payload in the shape of `drill`, and the exit code: 1 after a false alert or verdict, or a missed proof.

    Raises:
        CannotRun: If the stack does not start.
    """
    (program,) = choose_programs(DrillRequest(slugs=(PROOF,)))
    runs_dir = fresh_runs_dir(request.out, settings.state_path)
    folder = make_private_folder(runs_dir / "clean")
    plan = RunPlan(seed=request.seed)
    stack_plan = with_program(fresh_plan(settings, tools, folder / "state"), program, "wrap")
    traffic = TrafficPlan(stack_plan.url("service_port"), plan.rate, minutes * 60 + 1800, seed=request.seed)
    with open_scene(stack_plan, traffic, say) as scene:
        begin = time.monotonic()
        say(f"clean: {minutes:g} minutes of healthy traffic at {plan.rate:g} requests a second, a surge inside")
        silence = _listen(scene, minutes * 60, plan.rate, say)
        heard = false_alerts(scene.watch.timeline)
        claims = silence.verdicts + [one for one in fetch_reports(stack_plan.url("triage_port")) if named_slug(one)]
        clean = {
            "minutes": round((time.monotonic() - begin) / 60, 2),
            "requests": int(scene.traffic.tally().get("sent", 0)),
            "by_status": scene.traffic.tally().get("by_status", {}),
            "surge_ratio": SURGE_RATIO,
            "rules_loaded": _rules_loaded(scene.watch.prometheus_url),
            "failed_scrapes": _failed_scrapes(scene.watch.prometheus_url, time.monotonic() - begin),
            "watchdog_firing": silence.watchdog,
            "false_alerts": len(heard),
            "false_verdicts": len(claims),
        }
        save_json(folder / "false_alerts.json", heard)
        save_json(folder / "false_verdicts.json", claims)
        clean["proof"] = _prove(program, scene, folder, replace(plan, baseline_seconds=0.0), say)
        save_metrics({"exporter": f"{scene.handle.exporter_url}/metrics"}, folder / "metrics")
        save_json(folder / "alerts.json", scene.watch.timeline)
    save_json(runs_dir / "clean.json", clean)
    good = not heard and not claims and clean["watchdog_firing"] and clean["proof"]["named"]
    return summary(runs_dir, [], clean), 0 if good else 1


def _prove(program: Program, scene: Scene, folder: Path, plan: RunPlan, say: Say) -> dict[str, Any]:
    say(f"proof: {program.slug} in the same stack")
    with caused(program, scene):
        fired = wait_for_alert(scene, program.slug, plan)
        answers = triage_and_keep(scene, folder, time.time(), fired[0] if fired else None)
    told, blind = (judge(answers[name], program.slug) for name in ("told", "blind"))
    named = fired is not None and program.slug == told.verdict and program.slug == blind.verdict
    say(f"proof: {'named' if named else 'not named'}")
    return {"slug": program.slug, "named": named, "alert": fired[0] if fired else None}
