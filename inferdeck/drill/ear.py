"""Listens to a stack in which nothing may be alerted or named, and asks triage about the present again and again."""

from __future__ import annotations

import time
from typing import Any

from inferdeck.drill.reports import fetch_reports, named_slug
from inferdeck.drill.scene import Scene
from inferdeck.drill.triage_call import ask
from inferdeck.drill.watch import heard

__all__ = ["Ear"]

# triage is asked about the present as often as a nervous person would
ASK_EVERY_SECONDS = 45.0
# and soon after something was done to the stack, when it looks worst
ASK_SOON_SECONDS = 15.0


class Ear:
    """What is heard in a stack.

    Attributes:
        verdicts: What triage named when it was asked; each is one too many.
        watchdog: Whether the alert that always fires was seen: without it nothing could have been heard.
    """

    def __init__(self, scene: Scene) -> None:
        """Begin to listen.

        Args:
            scene: The running stack.
        """
        self._scene = scene
        self._began = time.monotonic()
        self._ask_at = self._began + ASK_EVERY_SECONDS
        self.verdicts: list[dict[str, Any]] = []
        self.watchdog = False

    def elapsed(self) -> float:
        """Return the seconds since the begin."""
        return time.monotonic() - self._began

    def until(self, seconds: float) -> None:
        """Listen until so many seconds after the begin."""
        while (left := seconds - self.elapsed()) > 0:
            self._scene.stack.poll()
            firing = self._scene.watch.look()
            self.watchdog |= any(labels.get("alertname") == "Watchdog" for labels in firing)
            if time.monotonic() >= self._ask_at:
                self.ask()
            time.sleep(min(1.0, max(0.0, left)))

    def ask_soon(self) -> None:
        """Ask triage in a moment: something was just done to the stack."""
        self._ask_at = min(self._ask_at, time.monotonic() + ASK_SOON_SECONDS)

    def ask(self) -> None:
        """Ask triage, told nothing but the time; what it names is kept."""
        plan = self._scene.plan
        answer = ask(plan.url("prometheus_port"), plan.ring_dir, time.time(), None, time.time)
        if not answer["abstained"]:
            self.verdicts.append({"from": "blind", "after_s": round(self.elapsed(), 1), **answer["verdict"]})
        self._ask_at = time.monotonic() + ASK_EVERY_SECONDS

    def alerts(self) -> list[dict[str, Any]]:
        """Return the firings so far that are no meta alert: those seen, and those that only Prometheus recorded.

        Raises:
            CannotRun: If Prometheus does not answer.
        """
        return heard(self._scene.watch, self.elapsed())

    def claims(self) -> list[dict[str, Any]]:
        """Return what was named: when triage was asked, and in the reports that alerts started.

        Raises:
            CannotRun: If the triage service does not list its reports.
        """
        reports = fetch_reports(self._scene.plan.url("triage_port"))
        return self.verdicts + [report for report in reports if named_slug(report)]
