"""Scores of a drill: arithmetic over what its runs found, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["METHODS", "Fault", "Judgement", "confusion", "credited", "judge", "missed", "scores", "wilson"]

# from here on a verdict counts as confident: a wrong one would send somebody the wrong way
CONFIDENT = 0.5
# two-sided 95% of the normal distribution
CERTAIN = 1.959964
# Simpler methods beside triage: inferdeck/drill/baselines.py.
METHODS = ("largest_z", "first_alert", "baro")


@dataclass(frozen=True)
class Judgement:
    """What one triage said, measured against what was caused.

    Attributes:
        verdict: Slug named, None when triage abstained or did not run.
        verdict_layer: Its layer.
        confidence: 0..1.
        rank: 1-based rank of the true slug among the candidates, None when it is not there.
        abstained: Whether no verdict was given.
    """

    verdict: str | None = None
    verdict_layer: str | None = None
    confidence: float = 0.0
    rank: int | None = None
    abstained: bool = True


@dataclass(frozen=True)
class Fault:
    """One run of one failure.

    Attributes:
        detect_s: Seconds from the effect's begin to the first matching alert, None when none fired.
        named_s: Seconds from the effect's begin to the verdict, None when there was none.
        fired_before: Alerts that fired before the cause: the run is a miss, whatever came of it.
        baselines: Method -> what it names on the same data; empty where that was not recorded.
    """

    slug: str
    layer: str
    simulated: bool
    run: int
    alert: str | None
    detect_s: float | None
    named_s: float | None
    told: Judgement = field(default_factory=Judgement)
    blind: Judgement = field(default_factory=Judgement)
    fired_before: tuple[str, ...] = ()
    baselines: Mapping[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the run in the shape of a drill's `faults`."""
        return {
            "slug": self.slug,
            "layer": self.layer,
            "simulated": self.simulated,
            "run": self.run,
            "alert": self.alert,
            "detect_s": self.detect_s,
            "named_s": self.named_s,
            "verdict": self.told.verdict,
            "verdict_layer": self.told.verdict_layer,
            "confidence": self.told.confidence,
            "rank": self.told.rank,
            "abstained": self.told.abstained,
            "blind": {"verdict": self.blind.verdict, "rank": self.blind.rank, "abstained": self.blind.abstained},
            "fired_before": list(self.fired_before),
            "baselines": dict(self.baselines),
        }


def judge(triage: Mapping[str, Any] | None, slug: str) -> Judgement:
    """Measure a triage result against the slug that was caused.

    Args:
        triage: Result in the shape of `triage`, None when it did not run.
        slug: What was caused.
    """
    if triage is None:
        return Judgement()
    ranked = [candidate["slug"] for candidate in triage.get("candidates") or ()]
    rank = ranked.index(slug) + 1 if slug in ranked else None
    verdict = triage.get("verdict")
    if triage.get("abstained") or not verdict or not verdict.get("slug"):
        return Judgement(rank=rank)
    return Judgement(str(verdict["slug"]), verdict.get("layer"), float(verdict.get("confidence") or 0.0), rank, False)


def credited(
    fired: tuple[str, float] | None, early: Sequence[Mapping[str, Any]], slug: str
) -> tuple[str, float] | None:
    """Return the detection that counts: none when an alert with this slug fired before anything was caused.

    Args:
        fired: Alert and time, as waited for.
        early: Firings before the cause, as in a timeline.
        slug: What was caused.
    """
    return None if any(event["labels"].get("slug") == slug for event in early) else fired


def _share(hits: int, runs: int) -> float | None:
    # no run has no score: 0 would read as "all missed"
    return round(hits / runs, 4) if runs else None


def _at(judgement: Judgement, slug: str, places: int) -> bool:
    """Return whether the true slug is among the first *places*; an abstained run is a miss."""
    if judgement.abstained:
        return False
    if places == 1:
        return judgement.verdict == slug
    return judgement.rank is not None and judgement.rank <= places


def scores(faults: Sequence[Fault]) -> dict[str, Any]:
    """Return the scores over all runs, abstained ones in the denominator, simulated ones apart.

    Args:
        faults: The runs.

    Returns:
        `top1`, `top1_blind`, `layer_top1`, `abstain_rate`: shares; `avg3`: mean of the shares of runs with the true
        slug among the first 1, 2 and 3 candidates (Avg@3 as RCAEval has it); `wrong_and_confident`: share with a wrong
        verdict of confidence 0.5 or more; `simulated`: top1 and number of simulated runs; `baselines`: top1 of simpler
        methods on the same data; `intervals`: borders of the 95% certainty of a share; `layers`: which layer was at
        fault, and which one was named. None without runs.
    """
    real = [fault for fault in faults if not fault.simulated]
    simulated = [fault for fault in faults if fault.simulated]
    runs = len(real)
    within = [sum(_at(fault.told, fault.slug, places) for fault in real) for places in (1, 2, 3)]
    wrong = sum(not f.told.abstained and f.told.verdict != f.slug and f.told.confidence >= CONFIDENT for f in real)
    return {
        "top1": _share(within[0], runs),
        "top1_blind": _share(sum(_at(fault.blind, fault.slug, 1) for fault in real), runs),
        "avg3": round(sum(within) / (3 * runs), 4) if runs else None,
        "layer_top1": _share(sum(not f.told.abstained and f.told.verdict_layer == f.layer for f in real), runs),
        "abstain_rate": _share(sum(fault.told.abstained for fault in real), runs),
        "wrong_and_confident": _share(wrong, runs),
        "simulated": {
            "top1": _share(sum(_at(fault.told, fault.slug, 1) for fault in simulated), len(simulated)),
            "runs": len(simulated),
        },
        "baselines": {name: _baseline(real, name) for name in METHODS},
        "intervals": {
            "top1": wilson(within[0], runs),
            "top1_blind": wilson(sum(_at(fault.blind, fault.slug, 1) for fault in real), runs),
        },
        "layers": confusion(real),
    }


def _baseline(faults: Sequence[Fault], method: str) -> float | None:
    """Return the share of runs that a simpler method names, of those of which its data is known."""
    known = [fault for fault in faults if method in fault.baselines]
    return _share(sum(fault.baselines[method] == fault.slug for fault in known), len(known))


def wilson(hits: int, runs: int) -> list[float] | None:
    """Return the borders between which the true share lies with 95% certainty; None without runs.

    Wilson's score interval (1927): unlike the usual one it stays within 0..1 and holds for few runs and for all hits.

    Args:
        hits: Runs that hit.
        runs: All runs.
    """
    if not runs:
        return None
    z2 = CERTAIN**2
    middle = (hits + z2 / 2) / (runs + z2)
    half = CERTAIN / (runs + z2) * (hits * (runs - hits) / runs + z2 / 4) ** 0.5
    return [round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)]


def confusion(faults: Sequence[Fault]) -> dict[str, dict[str, int]]:
    """Return layer that was at fault -> layer that triage named -> runs; `abstained` where it named none.

    Args:
        faults: The runs.
    """
    table: dict[str, dict[str, int]] = {}
    for fault in faults:
        named = "abstained" if fault.told.abstained else fault.told.verdict_layer or "unknown"
        row = table.setdefault(fault.layer, {})
        row[named] = row.get(named, 0) + 1
    return {layer: dict(sorted(row.items())) for layer, row in sorted(table.items())}


def missed(fault: Fault, *, blind_only: bool) -> bool:
    """Return whether a run is a miss: not detected, not named as what was caused, or an alert fired before the cause.

    Args:
        fault: The run.
        blind_only: Judge only the triage that was told the time alone.
    """
    if fault.fired_before:
        return True
    blind = not _at(fault.blind, fault.slug, 1)
    return blind if blind_only else blind or fault.alert is None or not _at(fault.told, fault.slug, 1)
