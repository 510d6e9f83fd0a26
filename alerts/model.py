"""What one file of the catalogue may say: strict models, so that a misspelt key is an error and not a silent alert."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from alerts.slugs import ALWAYS_FIRING, FAILURES, LAYERS, META, SYMPTOMS, UNKNOWN_LAYER

__all__ = [
    "CASE_KINDS",
    "RESERVED_LABELS",
    "Alert",
    "Case",
    "CaseKind",
    "Duration",
    "Eval",
    "Firing",
    "Inhibition",
    "Line",
    "Series",
    "Slug",
    "StrictModel",
    "Threshold",
    "fill",
]

CaseKind = Literal["fires", "just_below", "surge", "no_data", "first_sample", "recovers", "silent"]
# What every alert must be tested for: silence as much as noise. More cases of `fires` and `silent` are welcome.
CASE_KINDS: tuple[CaseKind, ...] = ("fires", "just_below", "surge", "no_data", "first_sample", "recovers")
# Labels that generation writes; a catalogue file may add others, never these.
RESERVED_LABELS = frozenset({"alertname", "slug", "layer", "kind", "severity", "channel", "service"})

Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(s|m|h|d)$")]
Line = Annotated[str, StringConstraints(pattern=r"^\S[^\n]*$", max_length=300)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=40)]
AlertName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]+$", max_length=60)]
# `{name}` alone: neither a selector (`{job="x"}`) nor Prometheus' own templates (`{{ $value }}`) look like it.
_PLACEHOLDER = re.compile(r"(?<!\{)\{([a-z][a-z0-9_]*)\}(?!\})")


class StrictModel(BaseModel):
    """A frozen model that takes no unknown key and converts nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=False)


class Threshold(StrictModel):
    """A number that decides, and where it comes from: a row of the requirements, or a measurement by name."""

    value: float = Field(allow_inf_nan=False)
    source: Annotated[str, StringConstraints(strip_whitespace=True, min_length=8)]


class Series(StrictModel):
    """Samples of one series in promtool's notation, one each `interval` of the case."""

    series: Line
    values: Line


class Firing(StrictModel):
    """An alert that is expected: the labels beyond those that generation writes, and its description word for word."""

    labels: dict[str, str] = Field(default_factory=dict)
    description: Line


class Eval(StrictModel):
    """What is expected at a time after the first sample; an empty list is silence."""

    at: Duration
    firing: tuple[Firing, ...] = Field(strict=False)


class Case(StrictModel):
    """One promtool test; its name says the behaviour in a sentence."""

    name: Line
    kind: CaseKind
    interval: Duration = "5s"
    input: tuple[Series, ...] = Field(strict=False)
    expect: tuple[Eval, ...] = Field(strict=False, min_length=1)

    @model_validator(mode="after")
    def _kind_matches(self) -> Case:
        # Without data an alert may rightly fire (that a target is absent is data) or be silent: its no_data line tells.
        fires = any(moment.firing for moment in self.expect)
        if self.kind != "no_data" and fires != (self.kind in {"fires", "recovers"}):
            heard = "noise" if fires else "silence"
            raise ValueError(f"the case {self.name!r} is of kind {self.kind} and expects {heard}")
        if self.kind == "recovers" and self.expect[-1].firing:
            raise ValueError(f"the case {self.name!r} is of kind recovers and does not end in silence")
        return self


class Inhibition(StrictModel):
    """An alert that this one makes superfluous while both are about the same `equal` labels."""

    slug: Slug
    equal: tuple[str, ...] = Field(default=("service",), strict=False, min_length=1)
    because: Line


class Alert(StrictModel):
    """One alert, whole: everything that is generated about it follows from these fields."""

    slug: Slug
    kind: Literal["failure", "symptom", "meta"]
    layer: str
    alert: AlertName
    failure: Line
    expr: str
    # How often the rule is evaluated; without it as often as Prometheus evaluates by default. For rules over hours,
    # whose cost grows with the window while their answer changes slowly.
    every: Duration | None = None
    for_: Duration | None = Field(default=None, alias="for")
    keep_firing_for: Duration | None = None
    severity: Literal["page", "ticket", "info"]
    channel: Literal["page", "ticket", "data_quality"]
    labels: dict[str, str] = Field(default_factory=dict)
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    no_data: Line
    # What an evaluation without any result means, for who must say it (Grafana's noDataState): `ok` where the
    # comparison is part of the expression, so that nothing is left while all is well.
    no_data_state: Literal["ok", "alerting", "no_data"]
    summary: Line
    description: Line
    first_step: Line
    runbook: AlertName
    # "<dashboard>/<panel>", a key of dashboards/panels.json: what a person wants to see beside the alert.
    panel: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]+/[a-z0-9_-]+$")] | None = None
    inhibits: tuple[Inhibition, ...] = Field(default=(), strict=False)
    tests: tuple[Case, ...] = Field(strict=False, min_length=1)

    @model_validator(mode="after")
    def _names_are_known(self) -> Alert:
        known = {"failure": tuple(FAILURES), "symptom": SYMPTOMS, "meta": META}[self.kind]
        if self.slug not in known:
            raise ValueError(
                f"{self.slug!r} is no {self.kind} of the closed list in alerts/slugs.py: add it there or mend it"
            )
        if self.kind == "failure" and self.layer != FAILURES[self.slug]:
            raise ValueError(
                f"the layer of {self.slug} is {FAILURES[self.slug]!r} (alerts/slugs.py), not {self.layer!r}"
            )
        if self.layer not in (*LAYERS, *((UNKNOWN_LAYER,) if self.kind == "symptom" else ())):
            raise ValueError(f"{self.layer!r} is no layer; the closed list is {', '.join(LAYERS)}")
        if self.runbook != self.alert:
            raise ValueError(f"a runbook bears its alert's name: {self.alert!r}, not {self.runbook!r}")
        if taken := sorted(RESERVED_LABELS & self.labels.keys()):
            raise ValueError(f"labels that generation writes cannot be set by hand: {', '.join(taken)}")
        return self

    @model_validator(mode="after")
    def _thresholds_are_used(self) -> Alert:
        used = set(_PLACEHOLDER.findall(self.expr))
        if unknown := sorted(used - self.thresholds.keys()):
            raise ValueError(f"expr names {', '.join(unknown)}, which thresholds does not hold")
        if idle := sorted(self.thresholds.keys() - used):
            raise ValueError(f"thresholds that expr does not use: {', '.join(idle)}")
        # Notifications are grouped by these two texts, and a test compares them as they stand.
        if "{{" in self.summary + self.first_step:
            raise ValueError("summary and first_step hold no template: values belong into the description")
        for text in (self.summary, self.description, self.first_step):
            if unknown := sorted(set(_PLACEHOLDER.findall(text)) - self.thresholds.keys()):
                raise ValueError(f"a text names {', '.join(unknown)}, which thresholds does not hold")
        return self

    @model_validator(mode="after")
    def _cases_are_complete(self) -> Alert:
        names = [case.name for case in self.tests]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two cases bear the name {twice[0]!r}")
        # An alert that always fires has neither a threshold nor a silence to be tested for.
        wanted = ("fires",) if self.slug == ALWAYS_FIRING else CASE_KINDS
        if missing := [kind for kind in wanted if kind not in {case.kind for case in self.tests}]:
            raise ValueError(f"no test of kind {', '.join(missing)}: write one case for each")
        return self


def fill(text: str, thresholds: dict[str, Threshold]) -> str:
    """Return *text* with each `{name}` replaced by that threshold's value, in the shortest exact notation.

    Args:
        text: An expression or a sentence.
        thresholds: By name; every name in *text* is among them.
    """
    return _PLACEHOLDER.sub(lambda match: format(thresholds[match[1]].value, ".12g"), text)
