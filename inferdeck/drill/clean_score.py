"""Judges a clean time: which of its measurements say that it was not clean, or that nobody could hear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferdeck.drill.score import judge
from inferdeck.drill.silence import SURGE

__all__ = ["is_proven", "not_clean", "shipped_rules", "surge_ratio"]


def surge_ratio(acts: Sequence[Mapping[str, Any]], base_rate: float) -> float | None:
    """Return how many times the usual rate was sent while the surge was on, None without a surge.

    Args:
        acts: As performed: `slug`, `seconds`, `requests`.
        base_rate: The usual rate, in requests a second.
    """
    surge = next((act for act in acts if act["slug"] == SURGE), None)
    if surge is None or not surge["seconds"] or not base_rate:
        return None
    return round(float(surge["requests"] / surge["seconds"] / base_rate), 2)


def shipped_rules() -> int:
    """Return how many alerts the shipped rule files hold."""
    from alerts.yaml_text import parse
    from inferdeck.stack.parts import rule_files

    groups = [group for path in rule_files() for group in parse(path.read_text(encoding="utf-8"))[0]["groups"]]
    return sum("alert" in rule for group in groups for rule in group["rules"])


def is_proven(slug: str, alert: str | None, answers: Mapping[str, Any]) -> bool:
    """Return whether the failure at a clean time's end was alerted and named, by triage told and by triage blind.

    Args:
        slug: What was caused.
        alert: The alert that fired.
        answers: Results of triage, `told` and `blind`.
    """
    verdicts = [judge(answers[name], slug).verdict for name in ("told", "blind")]
    return alert is not None and [slug, slug] == verdicts


def not_clean(clean: Mapping[str, Any]) -> list[str]:
    """Return why a clean time is none, one sentence each; none when it is.

    What could not be asked counts as wrong: a silence in which nobody could hear proves nothing.

    Args:
        clean: In the shape of a drill's `clean`.
    """
    loaded, rules, failed = clean["rules_loaded"], clean["rules_shipped"], clean["failed_scrapes"]
    sentences = {
        "alerts fired": bool(clean["false_alerts"]),
        "something was named": bool(clean["false_verdicts"]),
        "the watchdog was never seen firing": not clean["watchdog_firing"],
        f"{'an unknown number' if loaded is None else loaded} of {rules} shipped alerts were loaded": loaded != rules,
        f"{'an unknown number of' if failed is None else failed} scrapes failed outside of restarts": failed != 0,
        "the failure at its end was not named": not clean["proof"]["named"],
    }
    return [sentence for sentence, wrong in sentences.items() if wrong]
