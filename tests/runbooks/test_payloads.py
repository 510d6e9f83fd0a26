"""Notifications, as they come and as they should not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.payloads import MOST_ALERTS, MOST_BYTES, Notification, PayloadError, parse_payload, read_payload


def alertmanager(**changes: Any) -> dict[str, Any]:
    """Return an Alertmanager notification: one alert fires, one is resolved, one was left out."""
    firing = {
        "status": "firing",
        "labels": {"alertname": "EventLoopBlocked", "slug": "event_loop_blocked", "kind": "failure"},
        "annotations": {"summary": "The event loop is blocked"},
        "startsAt": "2026-11-30T08:02:30.117Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus.example.org/graph",
        "fingerprint": "b838ba0bdc44f307",
    }
    resolved = firing | {"status": "resolved", "endsAt": "2026-11-30T08:31:15.4Z", "fingerprint": "4f0de1b97a2253ce"}
    return {
        "receiver": "page",
        "status": "firing",
        "alerts": [firing, resolved],
        "groupLabels": {"alertname": "EventLoopBlocked"},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example.org",
        "version": "4",
        "groupKey": '{}:{alertname="EventLoopBlocked"}',
        "truncatedAlerts": 1,
        "notification_reason": "new alerts added",
    } | changes


def grafana(**changes: Any) -> dict[str, Any]:
    """Return a Grafana notification with its own keys."""
    base = alertmanager()
    alert = base["alerts"][0] | {"values": None, "valueString": "", "silenceURL": "", "ruleUID": "x", "orgId": 1}
    return (
        base
        | {"version": "1", "alerts": [alert], "orgId": 1, "state": "alerting", "title": "t", "message": "m"}
        | changes
    )


def with_alert(**changes: Any) -> dict[str, Any]:
    """Return a notification of one alert with some fields changed."""
    return alertmanager(alerts=[alertmanager()["alerts"][0] | changes])


def test_alertmanagers_notification_is_read() -> None:
    """Firing and resolved alerts are told apart inside a firing group; the zero time is no time; truncation is kept."""
    found = parse_payload(alertmanager())

    assert ("alertmanager", "firing", 1) == (found.sender, found.status, found.truncated)
    assert ["b838ba0bdc44f307"] == [alert.fingerprint for alert in found.firing()]
    assert found.alerts[0].ends_at is None
    assert 1_796_027_475.4 == found.alerts[1].ends_at


def test_grafanas_notification_is_read() -> None:
    """Version 1 is Grafana's; null values and keys of its own are tolerated."""
    found = parse_payload(grafana())

    assert "grafana" == found.sender
    assert ["EventLoopBlocked"] == [alert.name for alert in found.firing()]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("d/inferdeck-overview?viewPanel=3", "d/inferdeck-overview?viewPanel=3"),
        ("https://grafana.example/d/x?viewPanel=3", "https://grafana.example/d/x?viewPanel=3"),
        ("//elsewhere.example/d/x?viewPanel=3", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_the_panel_of_the_rule_is_taken_where_the_sender_knows_none(told: str, kept: str) -> None:
    """Alertmanager passes on the annotation; what is neither an address nor a panel's path is left out."""
    (alert,) = parse_payload(with_alert(annotations={"dashboard_url": told})).alerts

    assert kept == alert.panel_url


def test_the_watchdog_and_other_meta_alerts_fire_without_being_incidents() -> None:
    """Alerts about the alerting itself are not among those that start a triage."""
    watchdog = with_alert(labels={"alertname": "Watchdog"})
    meta = with_alert(labels={"alertname": "Anything", "kind": "meta"})

    assert [] == list(parse_payload(watchdog).firing())
    assert [] == list(parse_payload(meta).firing())


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (alertmanager(version="5"), "version '5'"),
        (alertmanager(version=4), "version '4'"),
        ({key: value for key, value in alertmanager().items() if key != "version"}, "version 'None'"),
        (alertmanager(alerts=None), "no list of alerts"),
        (alertmanager(alerts=[{}] * (MOST_ALERTS + 1)), "set max_alerts"),
        (alertmanager(alerts=["text"]), "alert 0 is no object"),
        (alertmanager(status="maybe"), "neither firing nor resolved"),
        (alertmanager(truncatedAlerts=-1), "no count"),
        (alertmanager(truncatedAlerts=True), "no count"),
        (alertmanager(groupKey=7), "groupKey is no text"),
        (with_alert(status=None), "alert 0: status"),
        (with_alert(labels=[]), "labels is no object"),
        (with_alert(labels={"a": 1}), "labels is no text"),
        (with_alert(startsAt=None), "startsAt is missing"),
        (with_alert(startsAt="yesterday"), "no RFC 3339 time"),
        (with_alert(endsAt={}), "no RFC 3339 time"),
        (with_alert(startsAt="9999-12-31T23:59:59-12:00"), "alert 0: startsAt lies beyond the year 9999"),
        (with_alert(endsAt="9999-12-31T23:59:59-00:01"), "alert 0: endsAt lies beyond the year 9999"),
    ],
)
def test_a_wrong_notification_is_refused_with_the_reason(payload: dict[str, Any], complaint: str) -> None:
    """Unknown versions and wrong types are refused in one clear line."""
    with pytest.raises(PayloadError, match=complaint):
        parse_payload(payload)


def test_labels_with_markup_and_long_texts_are_kept_as_text_and_cut() -> None:
    """Markup in a label stays text; a text of 5,000 characters is cut."""
    found = parse_payload(with_alert(labels={"alertname": "<script>alert(1)</script>", "long": "x" * 5000}))

    assert "<script>alert(1)</script>" == found.alerts[0].name
    assert 1000 == len(found.alerts[0].labels["long"])


@given(st.datetimes(), st.integers(-1439, 1439))
def test_every_time_that_is_taken_can_be_written_down(moment: datetime, minutes: int) -> None:
    """Whatever the zone, a start is refused or a time that Python can show again."""
    text = f"{moment.isoformat()}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    try:
        alert = parse_payload(with_alert(startsAt=text)).alerts[0]
    except PayloadError:
        return
    assert 1 <= datetime.fromtimestamp(alert.starts_at, UTC).year <= 9999


def test_identities_are_bounded_whatever_the_labels() -> None:
    """Thousands are remembered: a megabyte of labels makes a short identity, in which its last letter counts."""
    long = {"alertname": "A", "x": "y" * 1_000_000}
    one, other = (
        parse_payload(with_alert(fingerprint="", labels=labels)).alerts[0]
        for labels in (long, long | {"x": long["x"][:-1] + "z"})
    )

    assert 100 > len(one.key)
    assert one.key != other.key


def test_half_a_surrogate_pair_does_no_harm() -> None:
    """JSON can hold what UTF-8 cannot: the notification is taken, and its texts can be written."""
    found = read_payload(json.dumps(with_alert(labels={"alertname": "\ud800A"}, fingerprint="\udfff")).encode())

    assert ["?A"] == [alert.name.encode().decode() for alert in found.firing()]


def test_an_alert_without_fingerprint_still_has_one_identity() -> None:
    """Its labels are its identity, in whatever order they come."""
    one = parse_payload(with_alert(fingerprint="", labels={"a": "1", "b": "2"})).alerts[0]
    other = parse_payload(with_alert(fingerprint="", labels={"b": "2", "a": "1"})).alerts[0]

    assert one.key == other.key


def test_five_hundred_alerts_at_once_are_read() -> None:
    """A storm is one notification."""
    storm = alertmanager(alerts=[alertmanager()["alerts"][0] | {"fingerprint": f"{n:016x}"} for n in range(500)])

    assert 500 == len(read_payload(json.dumps(storm).encode()).alerts)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"\xff\xfe", b"{", b"NaN", b"[" * 100_000, b" " * (MOST_BYTES + 1)]
)
def test_a_body_that_is_no_notification_is_refused(body: bytes) -> None:
    """Empty, truncated, deeply nested, too large, no JSON: PayloadError, nothing else."""
    with pytest.raises(PayloadError):
        read_payload(body)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def survives(read: Callable[[], Notification]) -> None:
    """A payload is read or refused; anything else fails the test."""
    try:
        found = read()
    except PayloadError:
        return
    assert all(alert.key and alert.status in ("firing", "resolved") for alert in found.alerts)


@given(key=st.sampled_from(sorted(alertmanager())), value=values)
def test_any_value_in_any_top_field_is_read_or_refused(key: str, value: Any) -> None:
    """No value anywhere leads to another error than PayloadError."""
    survives(lambda: parse_payload(alertmanager(**{key: value})))


@given(key=st.sampled_from(sorted(alertmanager()["alerts"][0])), value=values)
def test_any_value_in_any_field_of_an_alert_is_read_or_refused(key: str, value: Any) -> None:
    """The same inside an alert."""
    survives(lambda: parse_payload(with_alert(**{key: value})))


@given(body=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Bytes that are no notification are refused."""
    survives(lambda: read_payload(body))
