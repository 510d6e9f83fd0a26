"""What a mapping file may say: which of a service's own metrics stand for ours, in which unit, with which labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from exporters.names import METRICS

__all__ = ["TARGETS", "UNITS", "LabelRule", "MetricMapping", "Replacement", "label_values", "translate"]

MetricName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
LabelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
Unit = Literal[
    "seconds", "milliseconds", "microseconds", "nanoseconds", "bytes", "kibibytes", "mebibytes", "ratio", "percent"
]

# Unit -> our base unit, and how many of it one is.
UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "seconds": ("seconds", 1.0),
    "milliseconds": ("seconds", 1e-3),
    "microseconds": ("seconds", 1e-6),
    "nanoseconds": ("seconds", 1e-9),
    "bytes": ("bytes", 1.0),
    "kibibytes": ("bytes", 1024.0),
    "mebibytes": ("bytes", 1024.0**2),
    "ratio": ("ratio", 1.0),
    "percent": ("ratio", 0.01),
}
# The names of ours that triage judges by and that somebody else's service can have. What only our recorder knows
# (rows, rings, labels that it refused) is not among them.
TARGETS: Final = (
    "model_requests_total",
    "model_latency_seconds",
    "model_stage_seconds",
    "model_requests_in_flight",
    "runtime_event_loop_lag_seconds",
    "runtime_event_loop_blocked_seconds_total",
    "runtime_process_cpu_seconds_total",
    "runtime_process_resident_memory_bytes",
    "runtime_open_file_descriptors",
    "runtime_file_descriptors_used_ratio",
    "runtime_host_cpu_ratio",
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class LabelRule(_Strict):
    """Where the value of one of our labels comes from: a constant, or a label of theirs.

    Attributes:
        value: A constant.
        source: Label of theirs; `from` in the file.
        values: Their value -> ours; a key that ends in * stands for all that begin so. Unsaid values are `otherwise`.
        otherwise: What all other values become.
    """

    value: str | None = None
    source: LabelName | None = Field(default=None, alias="from")
    values: dict[str, str] = Field(default_factory=dict)
    otherwise: str = "other"

    @model_validator(mode="after")
    def _one_of_two(self) -> LabelRule:
        if (self.value is None) == (self.source is None):
            raise ValueError("give either `value: WORD`, or `from: THEIR_LABEL` with `values`")
        if self.source is not None and not self.values:
            raise ValueError('`from` needs `values`: {"2*": ok, "5*": error}')
        return self


class Replacement(_Strict):
    """One metric of theirs that stands for one of ours.

    Attributes:
        metric: Its name in Prometheus; of a histogram the name without `_bucket`.
        sum: Instead of `metric`: a counter of seconds, with `count`; for times that are no histogram.
        count: How many observations `sum` holds.
        unit: Its unit; ours when absent.
        where: Labels that a series must have.
        unless: Labels that a series must not have.
        labels: Our labels.
        per: Divide by this metric of the same target.
    """

    metric: MetricName | None = None
    sum: MetricName | None = None
    count: MetricName | None = None
    unit: Unit | None = None
    where: dict[LabelName, str] = Field(default_factory=dict)
    unless: dict[LabelName, str] = Field(default_factory=dict)
    labels: dict[LabelName, LabelRule] = Field(default_factory=dict)
    per: MetricName | None = None

    @model_validator(mode="after")
    def _metric_or_sum(self) -> Replacement:
        pair = self.sum is not None and self.count is not None
        if (self.metric is not None) == pair or ((self.sum is None) != (self.count is None)):
            raise ValueError("give either `metric: NAME`, or `sum: NAME` together with `count: NAME`")
        if self.per is not None and (self.labels or self.metric is None):
            raise ValueError("`per` goes with a `metric` without labels")
        return self

    @property
    def factor(self) -> float:
        """By what their figures are multiplied to be in our unit."""
        return UNITS[self.unit][1] if self.unit else 1.0


class MetricMapping(_Strict):
    """A whole mapping file.

    Attributes:
        name: As it is asked for; the file's name.
        about: One sentence: whose metrics these are.
        source: Version or page from which the names were taken.
        metrics: Name of ours -> what stands for it.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    about: str
    source: str
    metrics: dict[str, list[Replacement]] = Field(min_length=1)

    def replacements(self, name: str) -> list[Replacement]:
        """Return what stands for a name of ours; empty when nothing does."""
        return self.metrics.get(name, [])


def translate(rule: LabelRule, theirs: str) -> str:
    """Return our value for a value of theirs: the exact key first, then the longest key with a *."""
    if rule.value is not None:
        return rule.value
    if theirs in rule.values:
        return rule.values[theirs]
    fitting = [key for key in rule.values if key.endswith("*") and theirs.startswith(key[:-1])]
    return rule.values[max(fitting, key=len)] if fitting else rule.otherwise


def label_values(name: str, label: str) -> tuple[str, ...] | None:
    """Return the closed set of a label of ours, () for an open one, None when the metric has no such label."""
    ours = METRICS[name]
    if label not in ours.labels:
        return None
    return () if label in ours.limits else tuple(ours.labels[label])
