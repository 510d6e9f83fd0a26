"""The generated files: the same PromQL, uids for ever, deletions of what went, and links that lead somewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alerts.generate import render_rule
from alerts.grafana.files import FOLDER_OF_FILES, WITHDRAWN, generate_grafana, grafana_files, read_impacts
from alerts.grafana.reading import Provisioned
from alerts.grafana.rules import UNREACHABLE, group_interval, rule_uid
from alerts.grafana.variables import DEFAULTS
from alerts.load import load_catalogue
from alerts.model import Alert
from alerts.panels import read_panels
from alerts.yaml_text import parse

ROOT = Path(__file__).resolve().parents[3]
ALERTS = load_catalogue()


def provisioned(files: dict[str, str]) -> Provisioned:
    """Return the entries of generated files."""
    mounted = {name: text for name, text in files.items() if name.startswith(FOLDER_OF_FILES)}
    return Provisioned({name: parse(text)[0] for name, text in mounted.items()})


@pytest.fixture(scope="module")
def files() -> Provisioned:
    """What is generated from the shipped catalogue."""
    return provisioned(grafana_files(ALERTS, ROOT))


def prometheus_rules() -> dict[str, dict[str, Any]]:
    """Return Prometheus' rules by alert."""
    groups = [group for alert in ALERTS for group in parse(render_rule(alert))[0]["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def test_there_is_one_rule_for_each_alert_and_one_for_prometheus_itself(files: Provisioned) -> None:
    """Titles are the alerts' names, which become the label alertname."""
    assert sorted([*prometheus_rules(), "PrometheusUnreachable"]) == sorted(rule["title"] for rule in files.rules())
    assert {alert.slug for alert in ALERTS} | {UNREACHABLE} == {group["name"] for group in files.entries("groups")}


def test_a_rule_asks_what_prometheus_asks(files: Provisioned) -> None:
    """The expression is inside word for word; without an inhibiting alert it is all there is."""
    told = prometheus_rules()
    inhibited = {target.slug for alert in ALERTS for target in alert.inhibits}
    for rule in files.rules():
        if rule["title"] not in told:
            continue
        asked = rule["data"][0]["model"]["expr"]
        expr = told[rule["title"]]["expr"].strip()
        if rule["labels"]["slug"] in inhibited:
            assert asked.startswith(f"(\n{expr}\n)\nunless on (")
        else:
            assert expr == asked.strip()
        assert told[rule["title"]].get("for", "0s") == rule["for"]
        assert told[rule["title"]].get("keep_firing_for") == rule.get("keepFiringFor")
        assert told[rule["title"]]["labels"] | {"service": "${INFERDECK_SERVICE}"} == rule["labels"]


def test_uids_are_those_that_were_shipped() -> None:
    """Written down here: a changed uid is another rule to Grafana, with its history and its silences lost."""
    assert "inferdeck-event_loop_blocked" == rule_uid("event_loop_blocked")
    assert "inferdeck-service_down" == rule_uid("service_down")
    long = rule_uid("a_slug_of_forty_letters_which_is_the_most")
    assert (40, "inferdeck-a_slug_of_forty_lette") == (len(long), long[:31])
    assert long != rule_uid("a_slug_of_forty_letters_which_is_the_mosu")


def test_a_rule_that_went_is_deleted_from_grafana() -> None:
    """Grafana keeps what its files no longer name, so that every uid ever shipped is remembered."""
    before = generate_grafana(ALERTS, {}, {}, ["inferdeck-gone"])
    again = generate_grafana(ALERTS, {}, {}, before["alerts/grafana/shipped_rules.txt"].split())

    assert [{"orgId": 1, "uid": "inferdeck-gone"}] == provisioned(before).entries("deleteRules")
    assert before == again
    assert [] == provisioned(generate_grafana(ALERTS, {}, {}, [])).entries("deleteRules")


def test_a_rule_leads_to_its_panel() -> None:
    """The panel of the catalogue, by the dashboard's uid and the panel's id."""
    (alert,) = (alert for alert in ALERTS if alert.slug == "event_loop_blocked")
    alert = alert.model_copy(update={"panel": "overview/lag"})
    panels = {"overview/lag": {"uid": "inferdeck-overview", "id": 7, "title": "Lag"}}
    rule = provisioned(generate_grafana([alert], panels, {}, [])).rules()[0]

    assert ("inferdeck-overview", 7) == (rule["dashboardUid"], rule["panelId"])
    assert "7" == rule["annotations"]["__panelId__"]


def test_every_rule_carries_what_a_message_must_say(files: Provisioned) -> None:
    """Summary, impact, first step, runbook and the line to ask with."""
    for rule in files.rules():
        wanted = {"summary", "description", "impact", "first_step", "runbook_url", "triage"}
        assert set() == wanted - rule["annotations"].keys(), rule["title"]
        assert (ROOT / rule["annotations"]["runbook_url"]).is_file()
        assert rule["annotations"]["triage"].startswith("inferdeck triage")


def test_an_empty_answer_is_healthy_and_a_failed_one_changes_nothing(files: Provisioned) -> None:
    """But for the sign of life, which must stay away, and the rule that watches Prometheus itself."""
    states = {rule["title"]: (rule["noDataState"], rule["execErrState"]) for rule in files.rules()}

    assert ("Alerting", "Alerting") == states.pop("PrometheusUnreachable")
    assert "OK" == states.pop("Watchdog")[1]
    assert {("OK", "KeepLast")} == set(states.values())


def test_a_grafana_that_is_not_the_notifier_gives_up_every_rule_it_ever_had() -> None:
    """It keeps what it loaded when it was, and would tell of each alert beside Alertmanager."""
    generated = generate_grafana(ALERTS, {}, {}, ["inferdeck-of_old"])
    document, _ = parse(generated[WITHDRAWN])
    (rules,) = (
        parse(text)[0] for name, text in generated.items() if name.endswith("/rules.yaml") and name != WITHDRAWN
    )

    shipped = {rule["uid"] for group in rules["groups"] for rule in group["rules"]}
    assert shipped | {"inferdeck-of_old"} == {entry["uid"] for entry in document["deleteRules"]}
    assert {"apiVersion", "deleteRules"} == document.keys()


def test_groups_tick_with_grafanas_scheduler(files: Provisioned) -> None:
    """A group's interval is a multiple of 10 s, or Grafana does not start."""
    assert all(int(group["interval"][:-1]) % 10 == 0 for group in files.entries("groups"))
    alert = ALERTS[0].model_copy(update={"every": "15s"})
    with pytest.raises(ValueError, match="no multiple of 10 s"):
        group_interval(alert)


def test_impacts_and_panels_are_read_from_their_files(tmp_path: Path) -> None:
    """The first paragraph under Impact, on one line; nothing where there is no page and no dashboard."""
    alert: Alert = ALERTS[0]
    (tmp_path / "runbooks").mkdir()
    page = tmp_path / "runbooks" / f"{alert.runbook}.md"
    page.write_text("---\n---\nx\n\n## Impact\nAll are\nslow.\n\nMore.\n\n## Confirm\n", encoding="utf-8")
    (tmp_path / "dashboards").mkdir()

    assert {alert.slug: "All are slow."} == read_impacts(ALERTS, tmp_path)
    assert {} == read_panels(tmp_path)
    (tmp_path / "dashboards/panels.json").write_text(json.dumps({"a/b": {"uid": "a", "id": 1}}))
    assert {"a/b": {"uid": "a", "id": 1}} == read_panels(tmp_path)


def test_the_environment_file_sets_every_variable() -> None:
    """One line each, in the form that compose reads."""
    text = grafana_files(ALERTS, ROOT)["alerts/grafana/grafana.env"]
    lines = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))

    assert {name: default for name, (default, _) in DEFAULTS.items()} == lines
