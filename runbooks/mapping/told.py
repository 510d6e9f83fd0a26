"""What a mapping found and what it did not, for reports and for doctor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runbooks.evidence import Evidence
from runbooks.mapping.model import TARGETS, MetricMapping
from runbooks.mapping.source import asked_for
from runbooks.signals import QUERIES

__all__ = ["absent_metrics", "mapping_told"]


def absent_metrics(mapping: MetricMapping, evidence: Evidence) -> dict[str, str]:
    """Return our name -> why there is nothing of it: not mapped, or without series; empty when nothing was read."""
    if evidence.series is None:
        return {}
    absent = {}
    for name in TARGETS:
        asked = [one for one in asked_for(mapping) if one.query.startswith(name)]
        if not asked:
            absent[name] = f"the mapping {mapping.name} names nothing for it"
        elif not any(evidence.get(one.query) for one in asked if one.query in QUERIES):
            theirs = ", ".join(dict.fromkeys(one.metric for one in asked if one.query in QUERIES))
            absent[name] = f"no series of {theirs}"
    return absent


def mapping_told(mapping: MetricMapping, absent: Mapping[str, str]) -> dict[str, Any]:
    """Return what a report says of a mapping."""
    return {
        "name": mapping.name,
        "about": mapping.about,
        "found": [name for name in mapping.metrics if name not in absent],
        "absent": sorted(absent),
    }
