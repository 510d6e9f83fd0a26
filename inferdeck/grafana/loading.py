"""`grafana push`: everything of ours into a running Grafana, over its HTTP interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from alerts.grafana.reading import Provisioned, read_provisioned
from alerts.grafana.rules import DATASOURCE
from inferdeck.checks import Check
from inferdeck.grafana.shapes import (
    ALERT_FOLDER,
    DASHBOARD_FOLDER,
    contact_points,
    dashboards,
    policies,
    rule_groups,
)
from runbooks.notify.grafana_api import GrafanaRefusedError, GrafanaSession

__all__ = ["push"]

Say = Callable[[str], None]
# What a person may still change in Grafana afterwards: without this header Grafana would lock it.
UNLOCKED: Final = True


def push(
    session: GrafanaSession,
    root: Path,
    environ: Mapping[str, str],
    *,
    prometheus_url: str = "",
    replace_policies: bool = False,
) -> list[Check]:
    """Load folders, data source, dashboards and alerting, and return what was done.

    What is there under our uids and names is replaced; nothing else is touched but, when asked, the policy tree, of
    which Grafana has only one.

    Args:
        session: Where.
        root: The checkout.
        environ: The values of the alerting files' variables.
        prometheus_url: Creates the data source when it is missing.
        replace_policies: Replace the policy tree.

    Raises:
        GrafanaRefusedError: At the first refusal; what was loaded before stays.
    """
    files = read_provisioned(root)
    return [
        *_data_source(session, prometheus_url),
        *_folders(session),
        *_dashboards(session, root),
        *_notifications(session, files, environ),
        *_policies(session, files, environ, replace=replace_policies),
        *_rules(session, files, environ),
    ]


def _data_source(session: GrafanaSession, url: str) -> Iterator[Check]:
    name = "grafana: data source"
    if _there(session, lambda api: api.datasource.get_datasource_by_uid(DATASOURCE)) is not None:
        yield Check(name, "ok", f"{DATASOURCE} is there, and left as it is")
        return
    if not url:
        yield Check(
            name, "fail", f"there is no data source with the uid {DATASOURCE}", "create it, or give --prometheus URL"
        )
        return
    source = {
        "name": "Prometheus (inferdeck)",
        "uid": DATASOURCE,
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "jsonData": {"httpMethod": "POST", "timeInterval": "15s"},
    }
    session.ask(lambda api: api.datasource.create_datasource(source))
    yield Check(name, "ok", f"{DATASOURCE} created")


def _folders(session: GrafanaSession) -> Iterator[Check]:
    for uid, title in (DASHBOARD_FOLDER, ALERT_FOLDER):
        if _there(session, partial(_folder, uid)) is None:
            session.ask(partial(_create_folder, title, uid))
    yield Check("grafana: folders", "ok", f"{DASHBOARD_FOLDER[1]}, {ALERT_FOLDER[1]}")


def _folder(uid: str, api: Any) -> Any:
    return api.folder.get_folder(uid)


def _create_folder(title: str, uid: str, api: Any) -> None:
    api.folder.create_folder(title, uid=uid)


def _dashboards(session: GrafanaSession, root: Path) -> Iterator[Check]:
    boards = dashboards(root)
    for board in boards.values():
        body = {"dashboard": {**board, "id": None}, "folderUid": DASHBOARD_FOLDER[0], "overwrite": True}
        session.ask(partial(_update_dashboard, body))
    yield Check("grafana: dashboards", "ok", f"{len(boards)} loaded")


def _update_dashboard(body: dict[str, Any], api: Any) -> None:
    api.dashboard.update_dashboard(body)


def _notifications(session: GrafanaSession, files: Provisioned, environ: Mapping[str, str]) -> Iterator[Check]:
    """Load templates, then the contact points that use them, then the mute timings."""
    for template in files.entries("templates"):
        session.ask(partial(_put_template, template))
    yield Check("grafana: templates", "ok", f"{len(files.entries('templates'))} loaded")
    points = contact_points(files, environ)
    known = {one["uid"] for one in session.ask(lambda api: api.alertingprovisioning.get_contactpoints())}
    for point in points:
        session.ask(partial(_put_contact_point, point, point["uid"] in known))
    yield Check("grafana: contact points", "ok", f"{len(points)} loaded")
    timings = [{"name": one["name"], "time_intervals": one["time_intervals"]} for one in files.entries("muteTimes")]
    there = {one["name"] for one in session.ask(lambda api: api.alertingprovisioning.get_mute_timings())}
    for timing in timings:
        session.ask(partial(_put_mute_timing, timing, timing["name"] in there))
    yield Check("grafana: mute timings", "ok", f"{len(timings)} loaded")


def _put_template(template: Mapping[str, Any], api: Any) -> None:
    body = {"template": template["template"]}
    api.alertingprovisioning.create_or_update_template(template["name"], body, disable_provenance=UNLOCKED)


def _put_contact_point(point: dict[str, Any], known: bool, api: Any) -> None:
    if known:
        api.alertingprovisioning.update_contactpoint(point["uid"], point, disable_provenance=UNLOCKED)
    else:
        api.alertingprovisioning.create_contactpoint(point, disable_provenance=UNLOCKED)


def _put_mute_timing(timing: dict[str, Any], known: bool, api: Any) -> None:
    if known:
        # The client cannot send the header here; without it Grafana refuses to change what is not locked.
        path = f"/v1/provisioning/mute-timings/{timing['name']}"
        api.client.PUT(path, json=timing, headers={"X-Disable-Provenance": "true"})
    else:
        api.alertingprovisioning.create_mute_timing(timing, disable_provenance=UNLOCKED)


def _policies(
    session: GrafanaSession, files: Provisioned, environ: Mapping[str, str], *, replace: bool
) -> Iterator[Check]:
    name = "grafana: policies"
    if not replace:
        yield Check(
            name, "warn", "left as they are: Grafana has one tree, and it may be somebody's", "--policies replaces it"
        )
        return
    tree = policies(files, environ)
    session.ask(lambda api: api.alertingprovisioning.set_notification_policy_tree(tree, disable_provenance=UNLOCKED))
    yield Check(name, "ok", "replaced")


def _rules(session: GrafanaSession, files: Provisioned, environ: Mapping[str, str]) -> Iterator[Check]:
    groups = rule_groups(files, environ)
    for group in groups:
        session.ask(partial(_put_group, group))
    gone = [entry["uid"] for entry in files.entries("deleteRules")]
    for uid in gone:
        # Deleting one that is not there is well for Grafana.
        session.ask(partial(_delete_rule, uid))
    yield Check("grafana: alert rules", "ok", f"{sum(len(group['rules']) for group in groups)} loaded")


def _put_group(group: dict[str, Any], api: Any) -> None:
    api.alertingprovisioning.update_rule_group(group["folderUid"], group["title"], group, disable_provenance=UNLOCKED)


def _delete_rule(uid: str, api: Any) -> None:
    api.alertingprovisioning.delete_alertrule(uid)


def _there(session: GrafanaSession, look: Callable[[Any], Any]) -> Any:
    """Return what is found, or None when Grafana says 404."""
    try:
        return session.ask(look)
    except GrafanaRefusedError as error:
        if error.status == 404:
            return None
        raise
