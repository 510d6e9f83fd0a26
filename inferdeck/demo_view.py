"""Draws the end of the demo on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from inferdeck.waterfall import show_trace

__all__ = ["show_demo"]

REASONS = 4


def show_demo(console: Console, payload: dict[str, Any]) -> None:
    """Print what was caused, what was named and why, and a slow session.

    Args:
        console: Where to.
        payload: In the shape of `demo`.
    """
    alert, report = payload["alert"], payload["triage"]
    console.print(Rule("what happened", align="left"))
    console.print(f"caused    {payload['caused']}")
    console.print(
        f"requests  {payload['requests'].get('sent', 0)} sent, answers {payload['requests'].get('by_status', {})}",
        markup=False,
    )
    if alert["name"]:
        where = "Prometheus and Alertmanager" if alert["notified"] else "Prometheus; Alertmanager never had it"
        console.print(f"alert     {alert['name']} after {alert['detect_s']:.0f} s in {where}")
    else:
        console.print("alert     none", style="red")
    if report:
        _show_report(console, payload, report)
    if payload["trace"]:
        console.print(Rule("a slow session", align="left"))
        show_trace(console, payload["trace"])
    console.print(Rule(align="left"))
    if payload["named"]:
        console.print(Text("the named cause is the caused one", style="bold green"))
    else:
        console.print(Text("the cause was not named", style="bold red"))
    if payload["fired_before"]:
        console.print(Text(f"{', '.join(payload['fired_before'])} fired before the cause", style="bold red"))
    if payload["left_running"]:
        console.print(Text(f"{payload['left_running']} processes were left running", style="bold red"))


def _show_report(console: Console, payload: dict[str, Any], report: dict[str, Any]) -> None:
    verdict = report.get("verdict") or {}
    console.print(Rule("what triage said, started by the alert", align="left"))
    if not verdict.get("slug"):
        console.print("verdict   none: triage abstained", style="yellow")
    else:
        after = f", {payload['named_s']:.0f} s after the cause" if payload["named_s"] else ""
        told = f"{verdict['slug']} (layer {verdict['layer']}, confidence {verdict['confidence']:.2f})"
        console.print(Text(f"verdict   {told}{after}", style="bold"))
    console.print(f"          {verdict.get('summary', '')}", markup=False)
    for candidate in (report.get("candidates") or [])[:1]:
        for reason in candidate["reasons"][:REASONS]:
            console.print(f"          - {reason}", markup=False)
    if report.get("runbook"):
        console.print(f"runbook   {report['runbook']}", markup=False)
