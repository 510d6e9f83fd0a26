"""`grafana check`: is what a running Grafana holds what our files say? Reads only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from alerts.grafana.reading import Provisioned, read_provisioned
from alerts.grafana.rules import DATASOURCE
from inferdeck.checks import Check
from inferdeck.grafana.shapes import contact_points, dashboards, policies, rule_groups
from runbooks.notify.grafana_api import GrafanaRefusedError, GrafanaSession

__all__ = ["compare"]

_MEND: Final = "run `inferdeck grafana push`, or restart the Grafana that reads our files"
# Grafana fills in what a rule does not say, so that only what ours say is compared.
_RULE: Final = ("title", "condition", "noDataState", "execErrState", "for", "labels", "annotations")


def compare(session: GrafanaSession, root: Path, environ: Mapping[str, str]) -> list[Check]:
    """Return how each part of ours stands in a running Grafana.

    Args:
        session: Which.
        root: The checkout.
        environ: The values of the alerting files' variables.

    Raises:
        GrafanaRefusedError: If it cannot be asked at all.
    """
    files = read_provisioned(root)
    info = session.ask(lambda api: api.client.GET("/health"))
    found = [Check("grafana: version", "ok", str(info.get("version")) if isinstance(info, dict) else "not told")]
    found += _data_source(session)
    found.append(_named("dashboards", _dashboards(session, root)))
    found.append(_named("alert rules", _rules(session, files, environ)))
    found.append(_named("contact points", _contact_points(session, files, environ)))
    found.append(_named("mute timings", _mute_timings(session, files)))
    found.append(_named("templates", _templates(session, files)))
    found.append(_named("policies", _policies(session, files, environ)))
    return found


def _named(what: str, wrong: Iterator[str]) -> Check:
    said = list(wrong)
    return Check(
        f"grafana: {what}", "fail" if said else "ok", "; ".join(said) or "as in our files", _MEND if said else ""
    )


def _data_source(session: GrafanaSession) -> Iterator[Check]:
    name = "grafana: data source"
    try:
        answer = session.ask(lambda api: api.datasource.health(DATASOURCE))
    except GrafanaRefusedError as error:
        yield Check(name, "fail", str(error), "its address as seen from Grafana is wrong, or it is missing")
        return
    said = str(answer.get("message", "")) if isinstance(answer, dict) else ""
    well = isinstance(answer, dict) and answer.get("status") == "OK"
    yield Check(name, "ok" if well else "fail", said, "" if well else "mend its address")


def _dashboards(session: GrafanaSession, root: Path) -> Iterator[str]:
    for uid, board in dashboards(root).items():
        try:
            answer = session.ask(partial(_dashboard, uid))
        except GrafanaRefusedError as error:
            if error.status != 404:
                raise
            yield f"{uid} is missing"
            continue
        if _questions(answer["dashboard"]) != _questions(board):
            yield f"{uid} has other panels or questions"


def _dashboard(uid: str, api: Any) -> Any:
    return api.dashboard.get_dashboard(uid)


def _questions(board: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return what a dashboard asks; Grafana migrates how it is drawn when it loads one."""
    return sorted(
        (panel["id"], panel.get("title", ""), *(target.get("expr", "") for target in panel.get("targets", [])))
        for panel in board.get("panels", [])
    )


def _rules(session: GrafanaSession, files: Provisioned, environ: Mapping[str, str]) -> Iterator[str]:
    known = {rule["uid"]: rule for rule in session.ask(lambda api: api.alertingprovisioning.get_alertrules_all())}
    for group in rule_groups(files, environ):
        for rule in group["rules"]:
            there = known.get(rule["uid"])
            if there is None:
                yield f"rule {rule['title']} is missing"
                continue
            other = [key for key in _RULE if there.get(key) != rule[key] and not _same_wait(there.get(key), rule[key])]
            if _exprs(there) != _exprs(rule):
                other.append("question")
            if other:
                yield f"rule {rule['title']} differs in {', '.join(other)}"
    gone = [entry["uid"] for entry in files.entries("deleteRules") if entry["uid"] in known]
    yield from (f"rule {uid} should be gone" for uid in gone)


def _same_wait(one: object, other: object) -> bool:
    """Return whether two durations are the same: Grafana writes 1m0s, or 60s, for 1m."""
    # What is no duration is NaN, and equal to nothing.
    return isinstance(one, str) and isinstance(other, str) and _seconds(one) == _seconds(other)


def _seconds(text: str) -> float:
    parts = re.findall(r"(\d+)(ms|s|m|h|d)", text)
    if "".join(number + unit for number, unit in parts) != text:
        return float("nan")
    return sum(int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit] for number, unit in parts)


def _exprs(rule: Mapping[str, Any]) -> list[Any]:
    return [query["model"].get("expr") or query["model"].get("expression") for query in rule["data"]]


def _contact_points(session: GrafanaSession, files: Provisioned, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what differs; addresses are not compared, since Grafana shows them masked."""
    there = {one["uid"]: one for one in session.ask(lambda api: api.alertingprovisioning.get_contactpoints())}
    for point in contact_points(files, environ):
        known = there.get(point["uid"])
        if known is None:
            yield f"contact point {point['name']} is missing"
        elif (known["name"], known["type"]) != (point["name"], point["type"]):
            yield f"contact point {point['name']} is {known['name']}, of type {known['type']}"


def _mute_timings(session: GrafanaSession, files: Provisioned) -> Iterator[str]:
    there = {one["name"] for one in session.ask(lambda api: api.alertingprovisioning.get_mute_timings())}
    yield from (f"{one['name']} is missing" for one in files.entries("muteTimes") if one["name"] not in there)


def _templates(session: GrafanaSession, files: Provisioned) -> Iterator[str]:
    there = {one["name"]: one["template"] for one in session.ask(lambda api: api.alertingprovisioning.get_templates())}
    for template in files.entries("templates"):
        # Grafana trims the text.
        if there.get(template["name"], "").strip() != template["template"].strip():
            yield f"{template['name']} is missing or another"


def _policies(session: GrafanaSession, files: Provisioned, environ: Mapping[str, str]) -> Iterator[str]:
    there = session.ask(lambda api: api.alertingprovisioning.get_notification_policy_tree())
    ours = policies(files, environ)
    if [*_receivers(there)] != [*_receivers(ours)]:
        yield f"the tree sends to {', '.join(_receivers(there))}; ours to {', '.join(_receivers(ours))}"


def _receivers(route: Mapping[str, Any]) -> Iterator[str]:
    yield str(route.get("receiver"))
    for below in route.get("routes") or []:
        yield from _receivers(below)
