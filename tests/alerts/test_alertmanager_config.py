"""Tests of alerts/alertmanager_config.py, judged by the real amtool."""

from __future__ import annotations

from pathlib import Path

import pytest

from alerts.alertmanager_config import RECEIVERS, render_alertmanager
from alerts.generate import render_rule
from alerts.load import load_catalogue
from alerts.promtool import run_tool
from alerts.yaml_text import parse

URL = "http://127.0.0.1:12345/webhook"


def receiver_of(config: Path, **labels: str) -> str:
    """Return the receiver to which the real amtool routes an alert of these labels."""
    pairs = [f"{name}={value}" for name, value in labels.items()]
    done = run_tool("amtool", ["config", "routes", "test", f"--config.file={config}", *pairs])
    assert 0 == done.rc, done.output
    return done.output.splitlines()[-1].strip()


@pytest.fixture
def config(tmp_path: Path, tools: None) -> Path:
    """The shipped configuration as the stack would write it."""
    path = tmp_path / "alertmanager.yml"
    path.write_text(render_alertmanager(URL), encoding="utf-8")
    return path


def test_amtool_accepts_the_configuration(config: Path) -> None:
    """The configuration is valid for Alertmanager, with and without a token."""
    token = config.with_name("token")
    token.write_text("secret")
    config.with_name("with-token.yml").write_text(render_alertmanager(URL, token))

    for path in (config, config.with_name("with-token.yml")):
        done = run_tool("amtool", ["check-config", path])
        assert 0 == done.rc, done.output
        assert " - 5 receivers" in done.output


def test_every_shipped_alert_goes_to_its_channel(config: Path) -> None:
    """Pages page, tickets wait, and the watchdog goes to the dead man."""
    alerts = load_catalogue()
    rules = [parse(render_rule(alert))[0]["groups"][0]["rules"][0] for alert in alerts]
    spine = {
        "EventLoopBlocked": "page",
        "ExporterUnreachable": "ticket",
        "LatencyObjectiveMissed": "page",
        "ServiceDown": "page",
        "Watchdog": "dead_man",
    }

    assert {alert.alert: alert.channel for alert in alerts} | spine == {
        rule["alert"]: receiver_of(config, alertname=rule["alert"], **rule["labels"]) for rule in rules
    }


def test_data_quality_has_a_channel_of_its_own(config: Path) -> None:
    """Row A14: an alert on data quality never reaches the pager, whatever its severity says."""
    labels = {"alertname": "LowQualityText", "slug": "low_quality_text", "layer": "data", "channel": "data_quality"}

    assert "data_quality" == receiver_of(config, **labels, severity="ticket")
    assert "data_quality" == receiver_of(config, **labels, severity="page")


def test_a_self_test_wakes_nobody(config: Path) -> None:
    """Its alert goes to a receiver of its own, whatever else its labels say."""
    labels = {"alertname": "InferdeckSelftest", "slug": "selftest", "selftest": "0123456789abcdef"}

    assert "selftest" == receiver_of(config, **labels, severity="page", channel="page")


def test_each_self_test_is_a_group_of_its_own(config: Path) -> None:
    """A second run does not wait for the interval of the first one's group; its end is told to nobody."""
    document, _ = parse(config.read_text())
    (route,) = [route for route in document["route"]["routes"] if route["receiver"] == "selftest"]
    (receiver,) = [receiver for receiver in document["receivers"] if receiver["name"] == "selftest"]

    assert (["alertname", "selftest"], "0s") == (route["group_by"], route["group_wait"])
    assert [False] == [hook["send_resolved"] for hook in receiver["webhook_configs"]]


def test_an_alert_that_no_route_knows_is_still_heard(config: Path) -> None:
    """An alert without our labels becomes a ticket."""
    assert "ticket" == receiver_of(config, alertname="SomebodyElses")


def test_amtool_notices_a_receiver_that_does_not_exist(config: Path) -> None:
    """A misspelt receiver fails the check: amtool does look."""
    config.write_text(config.read_text().replace("name: dead_man", "name: dead_men"))

    assert 1 == run_tool("amtool", ["check-config", config]).rc


def test_causes_silence_their_symptom_and_nothing_else() -> None:
    """A blocked loop and a dead service silence late answers of the same service; ServiceDown leaves the exporter's."""
    document, _ = parse(render_alertmanager(URL))

    alerts = {alert.slug: alert for alert in load_catalogue()}
    causes = [(alert.alert, alerts[one.slug].alert) for alert in alerts.values() for one in alert.inhibits]
    assert {("EventLoopBlocked", "LatencyObjectiveMissed"), ("ServiceDown", "LatencyObjectiveMissed")} <= set(causes)
    assert "ExporterUnreachable" not in {victim for _, victim in causes}
    assert [
        {
            "source_matchers": [f'alertname="{alert.alert}"'],
            "target_matchers": [f'alertname="{alerts[one.slug].alert}"'],
            "equal": list(one.equal),
        }
        for alert in alerts.values()
        for one in alert.inhibits
    ] == document["inhibit_rules"]
    assert all("service" in rule["equal"] for rule in document["inhibit_rules"])


def test_a_page_is_silenced_by_a_page_alone() -> None:
    """Whoever is woken by nothing must not learn in the morning that a ticket had kept it quiet."""
    alerts = {alert.slug: alert for alert in load_catalogue()}
    quiet = [
        (alert.slug, one.slug)
        for alert in alerts.values()
        for one in alert.inhibits
        if alerts[one.slug].severity == "page" and alert.severity != "page"
    ]

    assert [] == quiet


def test_no_alert_silences_what_silences_it() -> None:
    """Two that silence each other would both be silent."""
    pairs = {(alert.slug, one.slug) for alert in load_catalogue() for one in alert.inhibits}

    assert set() == {(cause, victim) for cause, victim in pairs if (victim, cause) in pairs}


def test_a_dead_service_silences_its_symptoms_and_a_dead_exporter_what_is_made_of_rows() -> None:
    """Nobody needs ten messages for one dead process; what else is wrong is still told."""
    alerts = {alert.slug: {one.slug for one in alert.inhibits} for alert in load_catalogue()}

    assert {"error_rate", "error_budget_burn", "latency_objective", "worker_stalled"} <= alerts["service_down"]
    assert {"no_traffic", "telemetry_loss", "queue_wait", "request_stuck"} <= alerts["exporter_unreachable"]
    assert not {"disk_full", "worker_killed", "memory_growth"} & alerts["service_down"]


def test_notifications_are_grouped_by_what_is_wrong_where() -> None:
    """One notification per alert, slug and service; only the self-test's route groups otherwise."""
    document, _ = parse(render_alertmanager(URL))

    assert ["alertname", "slug", "service"] == document["route"]["group_by"]
    assert ["selftest"] == [route["receiver"] for route in document["route"]["routes"] if "group_by" in route]


def test_every_receiver_posts_to_the_given_address_and_tells_the_end() -> None:
    """All receivers are webhooks to the stack's address, bounded, and say when an alert is over."""
    document, _ = parse(render_alertmanager(URL))

    assert list(RECEIVERS) == [receiver["name"] for receiver in document["receivers"]]
    assert [{"url": URL, "send_resolved": True, "max_alerts": 100}] * 4 == [
        hook
        for receiver in document["receivers"]
        if receiver["name"] != "selftest"
        for hook in receiver["webhook_configs"]
    ]


def test_a_token_is_named_by_its_file_and_never_written(tmp_path: Path) -> None:
    """The configuration holds the path of the token, not the token."""
    token = tmp_path / "token"
    token.write_text("very-secret")

    text = render_alertmanager(URL, token)

    assert 5 == text.count(f"credentials_file: {token}")
    assert "very-secret" not in text
