"""`demo`: the whole way once, for real: review in, row, metric, alert, triage, waterfall; and nothing left running."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from inferdeck.demo_view import show_demo
from inferdeck.drill.program import failures_folder, read_program
from inferdeck.drill.reports import await_report, named_slug
from inferdeck.drill.run import RunPlan, caused, settle, wait_for_alert
from inferdeck.drill.scene import fresh_plan, open_scene, with_program
from inferdeck.drill.score import credited
from inferdeck.look_up import Query, look_up
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings, load_settings
from inferdeck.stack.commands import find_tools, prepare_model
from inferdeck.stack.process import still_running
from inferdeck.terminal import progress_bar, sayer
from inferdeck.traffic import TrafficPlan

__all__ = ["run_demo"]

Say = Callable[[str], None]
CAUSE = "event_loop_blocked"
# how long the report may take once Alertmanager has the alert: group wait, delivery, 15 s of triage, and room
REPORT_SECONDS = 45.0


def run_demo(*, seed: int, quiet: bool) -> Outcome:
    """Run the demo.

    Args:
        seed: Draws sessions, gaps and reviews.
        quiet: Say nothing on the way.

    Raises:
        CannotRun: If a part cannot be had.
    """
    settings, say = load_settings(), sayer(quiet=quiet)
    with progress_bar("training the model", quiet=quiet) as progress:
        prepare_model(settings.model_path, progress, say)
    folder = Path(tempfile.mkdtemp(prefix="inferdeck-demo-"))
    try:
        payload = _play(settings, folder, seed, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    def show(console: Console) -> None:
        show_demo(console, payload)

    return Outcome(payload, 0 if payload["named"] and not payload["left_running"] else 1, show)


def _play(settings: StackSettings, folder: Path, seed: int, say: Say) -> dict[str, Any]:
    program = read_program(failures_folder() / f"{CAUSE}.py")
    stack_plan = with_program(fresh_plan(settings, find_tools(), folder / "state"), program, "wrap")
    # as short as the rules allow: a window of a minute needs most of a minute of healthy traffic
    plan = RunPlan(baseline_seconds=45.0, detect_timeout_seconds=120.0, seed=seed)
    traffic = TrafficPlan(stack_plan.url("service_port"), plan.rate, 900.0, seed=seed)
    with open_scene(stack_plan, traffic, say) as scene:
        say(f"real reviews: {_spell_shares(scene.reviews)}")
        early = settle(scene, plan.baseline_seconds, say)
        begin = time.time()
        say(f"cause: {CAUSE}, {program.sentence}")
        with caused(program, scene):
            fired = credited(wait_for_alert(scene, CAUSE, plan), early, CAUSE)
            if fired is None:
                say("alert: none in time")
            else:
                say(
                    f"alert: {fired[0]} fires in Prometheus after {fired[1] - begin:.0f} s and has reached Alertmanager"
                )
            report = await_report(stack_plan.url("triage_port"), CAUSE, REPORT_SECONDS) if fired else None
            named = time.time() if report and named_slug(report) else None
            # while the failure is on: the slowest request since its begin is one of those that suffer
            found = look_up(Query(slow=1, since_s=time.time() - begin), stack_plan.ring_dir)
        tally = scene.traffic.stop()
    # from the timeline: the alert may have been resolved by now
    notified = any(
        event["where"] == "alertmanager" and event["labels"].get("slug") == CAUSE for event in scene.watch.timeline
    )
    return {
        "caused": CAUSE,
        "named": bool(report and named_slug(report) == CAUSE and notified and not early),
        "fired_before": sorted({str(event["alertname"]) for event in early}),
        "reviews": scene.reviews,
        "requests": tally,
        "alert": {
            "name": fired[0] if fired else None,
            "detect_s": round(fired[1] - begin, 2) if fired else None,
            "notified": notified,
        },
        "named_s": round(named - begin, 2) if named else None,
        "triage": report,
        "trace": found["traces"][0] if found["traces"] else None,
        # counted, and after the scene has ended all that it started
        "left_running": len(still_running(scene.records)),
    }


def _spell_shares(shares: dict[str, Any]) -> str:
    """Return the shares of reviews that pass the contract, as a sentence."""
    return (
        f"{shares['texts']} drawn, {shares['before_ratio']:.1%} pass the contract as written, "
        f"{shares['after_ratio']:.1%} after cleaning"
    )
