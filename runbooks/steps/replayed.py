"""Known texts are asked again and again: do they become other tokens, and are the answers those of before?"""

from __future__ import annotations

from runbooks import signals
from runbooks.evidence import Evidence, Series, StepResult

__all__ = ["batch_difference", "changed_during", "other_tokens", "stored_difference"]


def _latest(series: tuple[Series, ...] | None, until: float) -> float | None:
    """Return the largest of the latest values up to a time; None without one."""
    found = [float(one.values[one.times <= until][-1]) for one in series or () if (one.times <= until).any()]
    return max(found, default=None)


def _difference(evidence: Evidence, against: str) -> StepResult:
    series = tuple(one for one in evidence.get(signals.REPLAY_DIFFERENCE) or () if one.labels.get("against") == against)
    value = _latest(series, evidence.window.incident[1])
    query = f'max({signals.REPLAY_DIFFERENCE}{{against="{against}"}})'
    what = {"stored": "stored with the model", "batch": "of the same text among others in one call"}[against]
    detail = f"a probability is up to {value:.4f} from that {what}" if value is not None else "no text was replayed"
    return StepResult(f"replayed.{against}_difference", value, "prometheus", query, detail)


def stored_difference(evidence: Evidence) -> StepResult:
    """Return the largest distance of a probability from the one that was stored when the model was made."""
    return _difference(evidence, "stored")


def batch_difference(evidence: Evidence) -> StepResult:
    """Return the largest distance of a probability asked alone from the same text's in a batch."""
    return _difference(evidence, "batch")


def other_tokens(evidence: Evidence) -> StepResult:
    """Return the share of the replayed texts that become other tokens than when the model was made."""
    value = _latest(evidence.get(signals.REPLAY_TOKENS), evidence.window.incident[1])
    detail = f"{value:.0%} of the texts become other tokens" if value is not None else "no text was replayed"
    return StepResult("replayed.other_tokens", value, "prometheus", f"max({signals.REPLAY_TOKENS})", detail)


def changed_during(evidence: Evidence) -> StepResult:
    """Return how many models were served in the time that was looked at: above 1, one came since."""
    rows = evidence.rows
    step, query = "replayed.changed_during", "rows: model"
    values = None if rows is None else rows.labels.get("model")
    found = [] if values is None else sorted({str(one) for one in values.tolist() if one})
    if not found:
        return StepResult(step, None, "ring", query, "no row tells its model")
    return StepResult(step, float(len(found)), "ring", query, f"models served: {', '.join(found)}")
