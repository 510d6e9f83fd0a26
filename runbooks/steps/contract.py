"""Do clients send what the contract forbids: how many, whose, which field, and do the others go on?"""

from __future__ import annotations

from collections import Counter

import numpy as np

from runbooks import signals
from runbooks.evidence import Evidence, StepResult
from runbooks.rows import Mask, Rows
from runbooks.steps.concentration import most_beyond_its_share

__all__ = ["field", "one_client", "others_refused", "refused_rise", "refused_share"]

# What tells clients apart, the most useful for a mend first.
COLUMNS = ("client_release", "agent_family", "device_type")
LEAST_REFUSED = 10
# A share below this is anybody's typing error, and ratios to it would only magnify noise.
QUIET_SHARE = 0.005
# Fewer requests than this a minute have no share to speak of.
LEAST_REQUESTS = 20.0
_QUERY = f'increase({signals.REFUSED}{{reason=~"{"|".join(signals.CONTRACT_REASONS)}"}}[1m])'
_NOBODYS = ("not_found", "method")


def _broken(rows: Rows) -> Mask:
    """Return which requests were refused for what their sender wrote; a wrong path or method is not among them."""
    reasons = rows.labels.get("reason")
    return np.zeros(len(rows), dtype=bool) if reasons is None else np.isin(reasons, signals.CONTRACT_REASONS)


def _judged(rows: Rows) -> Mask:
    """Return which requests reached the contract at all."""
    reasons = rows.labels.get("reason")
    return np.ones(len(rows), dtype=bool) if reasons is None else ~np.isin(reasons, _NOBODYS)


def _count(evidence: Evidence, since: float, until: float) -> tuple[float, float] | None:
    """Return refused and all requests that the contract judged in a time; None when unknown."""
    rows = evidence.rows
    if rows is not None:
        inside = rows.between(since, until)
        return float((_broken(rows) & inside).sum()), float((_judged(rows) & inside).sum())
    refused, requests = evidence.get(signals.REFUSED), evidence.get(signals.REQUESTS)
    if refused is None or requests is None:
        return None
    by = {one.labels.get("reason", ""): signals.increase([one], since, until) for one in refused}
    total = signals.increase(requests, since, until) - sum(by.get(name, 0.0) for name in _NOBODYS)
    return sum(by.get(name, 0.0) for name in signals.CONTRACT_REASONS), total


def _share(evidence: Evidence, span: tuple[float, float]) -> float | None:
    counted = _count(evidence, *span)
    return None if counted is None or counted[1] < LEAST_REQUESTS else counted[0] / counted[1]


def _source(evidence: Evidence) -> tuple[str, str]:
    return ("ring", "rows: reason") if evidence.rows is not None else ("prometheus", _QUERY)


def refused_share(evidence: Evidence) -> StepResult:
    """Return the share of requests that the contract refused (schema, length, characters) in the incident."""
    counted = _count(evidence, *evidence.window.incident)
    value = _share(evidence, evidence.window.incident)
    detail = (
        "too few requests" if value is None or counted is None else f"{counted[0]:.0f} of {counted[1]:.0f} requests"
    )
    return StepResult("contract.refused_share", value, *_source(evidence), detail)


def refused_rise(evidence: Evidence) -> StepResult:
    """Return that share over the share before, which is taken as half a percent at least."""
    now, before = _share(evidence, evidence.window.incident), _share(evidence, evidence.window.baseline)
    value = None if now is None or before is None else now / max(before, QUIET_SHARE)
    detail = "no healthy time to compare with" if value is None else f"{before:.1%} before, {now:.1%} now"
    return StepResult("contract.refused_rise", value, *_source(evidence), detail)


def _guilty(evidence: Evidence, rows: Rows) -> tuple[str, str, Mask, float] | None:
    """Return column, value, its rows and how far refusals come from it beyond its share of all requests (0 to 1)."""
    inside = rows.between(*evidence.window.incident) & _judged(rows)
    broken = _broken(rows) & inside
    if broken.sum() < LEAST_REFUSED:
        return None
    return most_beyond_its_share(rows, broken, inside & ~broken, COLUMNS)


def one_client(evidence: Evidence) -> StepResult:
    """Return how far the refusals come from one client: 1 all of them, 0 as many as it sends of the other requests."""
    rows, step, query = evidence.rows, "contract.one_client", f"rows: reason by {', '.join(COLUMNS)}"
    found = None if rows is None else _guilty(evidence, rows)
    if found is None:
        return StepResult(step, None, "ring", query, "too few refused requests, or no rows")
    column, value, _, beyond = found
    return StepResult(step, beyond, "ring", query, f"the refusals come from {column} = {value}")


def others_refused(evidence: Evidence) -> StepResult:
    """Return the share of refused requests among all other clients."""
    rows, step, query = evidence.rows, "contract.others_refused", "rows: reason of all other clients"
    found = None if rows is None else _guilty(evidence, rows)
    if rows is None or found is None:
        return StepResult(step, None, "ring", query, "too few refused requests, or no rows")
    others = ~found[2] & rows.between(*evidence.window.incident) & _judged(rows)
    if others.sum() < LEAST_REQUESTS:
        return StepResult(step, None, "ring", query, "no other client to compare with")
    refused = int((others & _broken(rows)).sum())
    return StepResult(step, refused / float(others.sum()), "ring", query, f"{refused} of {int(others.sum())} requests")


def field(evidence: Evidence) -> StepResult:
    """Return the rule of the contract, and the field, that is broken most often."""
    rows, step, query = evidence.rows, "contract.field", "rows: reason and request/refused_field"
    if rows is None:
        return StepResult(step, None, "ring", query, "no rows")
    broken = _broken(rows) & rows.between(*evidence.window.incident)
    fields = rows.labels.get("request/refused_field", np.full(len(rows), "", dtype=object))
    rules = (
        [
            f"{reason} of {name}" if name else reason
            for reason, name in zip(rows.labels["reason"][broken].tolist(), fields[broken].tolist(), strict=True)
        ]
        if broken.any()
        else []
    )
    if not rules:
        return StepResult(step, None, "ring", query, "nothing was refused")
    ((rule, count),) = Counter(rules).most_common(1)
    return StepResult(step, rule, "ring", query, f"{rule} in {count} of {len(rules)} refusals")
