"""What one metric is, and how its name must end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["UNIT_SUFFIXES", "Kind", "Metric"]

Kind = Literal["counter", "gauge", "histogram"]

# A name ends in its unit. `_requests` .. `_descriptors` count things; `_up`, `_info`, `_phase`, `_state` are states;
# `_confidence` and `_score` are ratios whose names are kept from the articles (design.md, section 4).
UNIT_SUFFIXES: Final = (
    "_seconds",
    "_bytes",
    "_ratio",
    "_total",
    "_requests",
    "_messages",
    "_characters",
    "_tokens",
    "_rows",
    "_rings",
    "_series",
    "_threads",
    "_tasks",
    "_loads",
    "_texts",
    "_descriptors",
    "_in_flight",
    "_queued",
    "_celsius",
    "_watts",
    "_hertz",
    "_processes",
    "_sessions",
    "_up",
    "_info",
    "_phase",
    "_state",
    "_confidence",
    "_score",
)


@dataclass(frozen=True)
class Metric:
    """One metric: everything that an exposition, a rule or a panel may know about it.

    Attributes:
        name: Full name, `_total` included for counters.
        kind: counter, gauge or histogram.
        unit: Base unit in words: seconds, bytes, ratio, or what is counted.
        help: HELP text; says what and from where, in one sentence.
        labels: Label -> values that always exist and start at 0; empty when the values come from data.
        limits: Label -> most values it may take, for labels whose values come from data; the rest is "(other)".
        buckets: Upper bounds in the unit, ascending, without +Inf; histograms only.
        source: Part of the row, status page or process that it is made of.
        job: Scrape job that shows it.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    source: str = "row"
    job: str = "inferdeck-exporter"
