"""What Grafana's alerting files may say, stricter than Grafana: it drops misspelt keys silently and exits on others.

Formats: `apiVersion: 1` of Grafana's file provisioning (10 to 13); each rule below names what Grafana does otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = [
    "EXPRESSION",
    "ContactPoint",
    "FormatError",
    "MuteTiming",
    "NoDataState",
    "Query",
    "Receiver",
    "Route",
    "Rule",
    "variables",
]

# The uid by which Grafana knows its own expressions, as a data source.
EXPRESSION: Final = "__expr__"
# Grafana stores uids of 40 characters at most, of these.
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_DURATION: Final = re.compile(r"[0-9]+(s|m|h|d)")
# Settings without which Grafana refuses a contact point, and with it its start.
_NEEDED: Final[Mapping[str, str]] = {"webhook": "url", "slack": "url", "dingding": "url", "email": "addresses"}
NoDataState = Literal["OK", "NoData", "Alerting", "KeepLast"]
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")


class FormatError(ValueError):
    """Something that Grafana would refuse, or silently read otherwise."""


def variables(text: str) -> list[str]:
    """Return the names of the environment variables in a value that Grafana expands.

    Args:
        text: A value of a contact point, a policy or a rule's labels.

    Raises:
        FormatError: For a `$` that names no variable: Grafana would take it away with what follows.
    """
    rest = _VARIABLE.sub("", text).replace("$$", "")
    if "$" in rest:
        raise FormatError(f"a lone $ in {text[:60]!r}: Grafana expands it; write $$ or use no $")
    return [braced or bare for braced, bare in _VARIABLE.findall(text)]


def _require(condition: object, what: str) -> None:
    if not condition:
        raise FormatError(what)


@dataclass(frozen=True)
class Query:
    """One step of a rule: a question to Prometheus, or an expression over earlier steps.

    Attributes:
        ref: Its name within the rule.
        datasource: Uid of the data source; `EXPRESSION` for an expression.
        model: What Grafana hands to it; PromQL in here is never expanded.
        seconds: How far back it looks; Grafana refuses a rule whose question looks back 0 s.
        kind: Grafana's queryType.
    """

    ref: str
    datasource: str
    model: Mapping[str, Any]
    seconds: int = 0
    kind: str = ""

    def __post_init__(self) -> None:
        _require(_UID.fullmatch(self.datasource), f"{self.datasource!r} is no uid of a data source")
        _require(
            self.datasource == EXPRESSION or self.seconds > 0,
            f"step {self.ref} looks back 0 s: Grafana refuses it",
        )

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it."""
        uid, kind = (EXPRESSION, EXPRESSION) if self.datasource == EXPRESSION else (self.datasource, "prometheus")
        return {
            "refId": self.ref,
            "queryType": self.kind,
            "relativeTimeRange": {"from": self.seconds, "to": 0},
            "datasourceUid": self.datasource,
            "model": {"refId": self.ref, "datasource": {"type": kind, "uid": uid}, **self.model},
        }


@dataclass(frozen=True)
class Rule:
    """One rule; `condition` names the step that decides."""

    uid: str
    title: str
    condition: str
    data: Sequence[Query]
    for_: str
    no_data: NoDataState
    on_error: Literal["OK", "Error", "Alerting", "KeepLast"]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    keep_firing_for: str | None = None
    dashboard_uid: str | None = None
    panel_id: int | None = None

    def __post_init__(self) -> None:
        _require(_UID.fullmatch(self.uid), f"{self.uid!r} is no uid: at most 40 letters, digits, - and _")
        _require(self.title.strip(), f"rule {self.uid} has no title")
        _require(self.condition in {query.ref for query in self.data}, f"{self.title}: no step {self.condition!r}")
        for name in (self.for_, self.keep_firing_for or "0s"):
            _require(_DURATION.fullmatch(name), f"{self.title}: {name!r} is no duration such as 15s")
        # A panel without its dashboard, and the other way round, is refused.
        _require((self.dashboard_uid is None) == (self.panel_id is None), f"{self.title}: half a link to a panel")
        for name, value in self.labels.items():
            _require("{{" not in value, f"{self.title}: label {name} holds a template")
            variables(value)
        for name, text in self.annotations.items():
            # Grafana's newest versions expand these in annotations, the others do not.
            _require("${" not in text, f"{self.title}: annotation {name} holds ${{: some versions expand it")

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it."""
        link: dict[str, Any] = {}
        annotations = dict(self.annotations)
        if self.dashboard_uid is not None:
            link = {"dashboardUid": self.dashboard_uid, "panelId": self.panel_id}
            annotations |= {"__dashboardUid__": self.dashboard_uid, "__panelId__": str(self.panel_id)}
        return {
            "uid": self.uid,
            "title": self.title,
            "condition": self.condition,
            "data": [query.document() for query in self.data],
            **link,
            "noDataState": self.no_data,
            "execErrState": self.on_error,
            "for": self.for_,
            **({"keepFiringFor": self.keep_firing_for} if self.keep_firing_for else {}),
            # As in Prometheus, an alert ends with the first evaluation that no longer yields its series.
            "missing_series_evals_to_resolve": 1,
            "labels": dict(self.labels),
            "annotations": annotations,
            "isPaused": False,
        }


@dataclass(frozen=True)
class Receiver:
    """One way out of a contact point."""

    uid: str
    type: Literal["webhook", "slack", "dingding", "email"]
    settings: Mapping[str, Any]
    resolved: bool = True

    def __post_init__(self) -> None:
        _require(_UID.fullmatch(self.uid), f"{self.uid!r} is no uid: at most 40 letters, digits, - and _")
        needed = _NEEDED[self.type]
        _require(self.settings.get(needed), f"contact point {self.uid} has no {needed}: Grafana would not start")

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it."""
        return {
            "uid": self.uid,
            "type": self.type,
            "settings": dict(self.settings),
            "disableResolveMessage": not self.resolved,
        }


@dataclass(frozen=True)
class ContactPoint:
    """A name that policies send to."""

    name: str
    receivers: Sequence[Receiver]

    def __post_init__(self) -> None:
        _require(self.receivers, f"contact point {self.name} leads nowhere")

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it."""
        return {"orgId": 1, "name": self.name, "receivers": [receiver.document() for receiver in self.receivers]}


@dataclass(frozen=True)
class MuteTiming:
    """Times of the week in which a route says nothing; `times` as from-to pairs of HH:MM, empty for whole days."""

    name: str
    weekdays: Sequence[str]
    times: Sequence[tuple[str, str]] = ()
    location: str = "UTC"

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it: as Alertmanager does, unlike Grafana's own HTTP interface."""
        times = [{"start_time": start, "end_time": end} for start, end in self.times]
        interval = {"weekdays": list(self.weekdays), **({"times": times} if times else {}), "location": self.location}
        return {"orgId": 1, "name": self.name, "time_intervals": [interval]}


@dataclass(frozen=True)
class Route:
    """A branch of the policy tree; the root has no matchers and no mute timings."""

    receiver: str
    group_by: Sequence[str]
    group_wait: str
    group_interval: str
    repeat_interval: str
    matchers: Sequence[tuple[str, Literal["=", "!=", "=~", "!~"], str]] = ()
    mute_timings: Sequence[str] = ()
    go_on: bool = False
    routes: Sequence[Route] = field(default=())

    def document(self) -> dict[str, Any]:
        """Return it as Grafana reads it."""
        found: dict[str, Any] = {"receiver": self.receiver}
        if self.matchers:
            found["object_matchers"] = [list(matcher) for matcher in self.matchers]
        if self.go_on:
            found["continue"] = True
        found |= {
            "group_by": list(self.group_by),
            "group_wait": self.group_wait,
            "group_interval": self.group_interval,
            "repeat_interval": self.repeat_interval,
        }
        if self.mute_timings:
            found["mute_time_intervals"] = list(self.mute_timings)
        if self.routes:
            found["routes"] = [route.document() for route in self.routes]
        return found
