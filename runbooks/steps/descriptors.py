"""Is a worker out of file descriptors, and what are they?"""

from __future__ import annotations

from collections.abc import Mapping

from runbooks import signals
from runbooks.evidence import Evidence, StepResult

__all__ = ["biggest_kind", "kind_share", "refused_looks"]

_PAGES = "status pages: fd_kinds"


def refused_looks(evidence: Evidence) -> StepResult:
    """Return at how many looks of the incident, about one a second, a worker had no descriptor left."""
    step, query = "descriptors.refused_looks", f"increase({signals.DESCRIPTORS_REFUSED}[1m])"
    series = evidence.get(signals.DESCRIPTORS_REFUSED)
    if series is None:
        return StepResult(step, None, "prometheus", query, "not counted here")
    value = signals.increase(series, *evidence.window.incident)
    return StepResult(step, value, "prometheus", query, f"none was left at {value:.0f} looks, about one a second")


def _kinds(evidence: Evidence) -> tuple[str, float] | None:
    """Return the kind of which the worker nearest to its limit holds most, and its share; None when none tells."""
    worst: tuple[float, Mapping[str, object]] | None = None
    for ring in evidence.rows.rings if evidence.rows is not None else ():
        kinds, used, limit = (ring.status.get(key) for key in ("fd_kinds", "fds", "fd_limit"))
        if not isinstance(kinds, Mapping) or not kinds or ring.last_sign_s < evidence.window.incident[0]:
            continue
        share = float(used) / float(limit) if isinstance(used, int) and isinstance(limit, int) and limit else 0.0
        if worst is None or share > worst[0]:
            worst = share, kinds
    if worst is None:
        return None
    counts = {str(kind): count for kind, count in worst[1].items() if isinstance(count, int)}
    kind = max(counts, key=lambda one: counts[one], default="")
    return (kind, counts[kind] / sum(counts.values())) if kind and sum(counts.values()) else None


def biggest_kind(evidence: Evidence) -> StepResult:
    """Return what most of the descriptors are: socket, file, pipe or other."""
    step, found = "descriptors.biggest_kind", _kinds(evidence)
    if found is None:
        return StepResult(step, None, "ring", _PAGES, "no worker tells: less than half of the limit is used")
    return StepResult(step, found[0], "ring", _PAGES, f"{found[1]:.0%} of the descriptors are of the kind {found[0]}")


def kind_share(evidence: Evidence) -> StepResult:
    """Return the share of that kind: one that holds most is where to look."""
    step, found = "descriptors.kind_share", _kinds(evidence)
    if found is None:
        return StepResult(step, None, "ring", _PAGES, "no worker tells: less than half of the limit is used")
    return StepResult(step, found[1], "ring", _PAGES, f"{found[1]:.0%} are of the kind {found[0]}")
