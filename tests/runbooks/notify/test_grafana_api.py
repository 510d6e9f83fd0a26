"""Annotations and silences: what is sent to Grafana, and that a refusal is one line, later or final."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from runbooks.notify.grafana_api import GrafanaRefusedError, GrafanaSession, annotate, end_incident, silence
from runbooks.notify.links import Links
from runbooks.notify.notifier import Notifier
from runbooks.notify.settings import NotifySettings
from runbooks.payloads import parse_payload
from runbooks.store import ReportStore
from tests.runbooks.notify.conftest import Answer, Receiver, message
from tests.runbooks.notify.test_notifier import ALERT, PAYLOAD, until

pytest.importorskip("grafana_client", reason="grafana-client is missing: pip install 'inferdeck[grafana]'")


def told(status: int, answer: Any) -> Answer:
    """Return an answer as Grafana gives it."""
    return Answer(status, json.dumps(answer).encode(), (("Content-Type", "application/json"),))


def session(receiver: Receiver) -> GrafanaSession:
    """Return a session with the receiver."""
    return GrafanaSession(receiver.url, "t0ken", 2.0)


def test_an_incident_is_marked_where_it_began(receiver: Receiver) -> None:
    """From its onset on, with verdict and links, found by slug, layer and alert."""
    receiver.answers = [told(200, {"id": 7, "message": "Annotation added"})]

    assert "sent" == annotate(session(receiver), message()).state
    (request,) = receiver.requests
    (body,) = receiver.bodies()
    assert ("POST", "/api/annotations", "Bearer t0ken") == (
        request["method"],
        request["path"],
        request["headers"]["Authorization"],
    )
    assert 1_796_025_720_500 == body["time"]
    assert ["inferdeck", "incident", "event_loop_blocked", "runtime", "alert:EventLoopBlocked"] == body["tags"]
    assert body["text"].startswith("inferdeck: EventLoopBlocked: event_loop_blocked\nVerdict: ")


def test_a_mitigation_is_a_mark_of_its_own(receiver: Receiver) -> None:
    """At its own time, and not among the incidents, which get an end."""
    receiver.answers = [told(200, {"id": 8, "message": "Annotation added"})]

    assert "sent" == annotate(session(receiver), replace(message(), event="mitigation"), clock=lambda: 1000.5).state
    (body,) = receiver.bodies()
    assert 1_000_500 == body["time"]
    assert ["inferdeck", "mitigation", "event_loop_blocked", "runtime", "alert:EventLoopBlocked"] == body["tags"]


def test_an_incident_that_ends_gets_its_end(receiver: Receiver) -> None:
    """Only open marks that began before; text and tags stay, since a patch would else empty them."""
    begun = {"id": 7, "time": 1000, "timeEnd": 1000, "tags": ["a"], "text": "t"}
    closed = begun | {"id": 8, "timeEnd": 1500}
    later = begun | {"id": 9, "time": 9_000_000, "timeEnd": 9_000_000}
    receiver.answers = [told(200, [begun, closed, later]), told(200, {"message": "Annotation patched"})]

    assert "sent" == end_incident(session(receiver), "EventLoopBlocked", 2.0).state
    asked, patched = receiver.requests
    assert ["inferdeck", "incident", "alert:EventLoopBlocked"] == parse_qs(urlsplit(asked["path"]).query)["tags"]
    assert ("PATCH", "/api/annotations/7") == (patched["method"], patched["path"])
    assert {"time": 1000, "timeEnd": 2000, "tags": ["a"], "text": "t"} == json.loads(patched["body"])


def test_what_is_no_annotation_is_left_out(receiver: Receiver) -> None:
    """The one that is still gets its end."""
    begun = {"id": 7, "time": 1000, "timeEnd": 1000, "tags": ["a"], "text": "t"}
    odd: list[Any] = [None, "x", 3, [], {}, begun | {"time": None}, begun | {"time": "1000"}, {"id": 7, "time": 1000}]
    receiver.answers = [told(200, [*odd, begun]), told(200, {"message": "Annotation patched"})]

    assert "sent" == end_incident(session(receiver), "EventLoopBlocked", 2.0).state
    assert ["GET", "PATCH"] == [one["method"] for one in receiver.requests]


@pytest.mark.parametrize("answer", [{"message": "hello"}, {}, "x", 3])
def test_an_answer_that_is_no_list_is_said(receiver: Receiver, answer: object) -> None:
    """In one line, and no annotation is touched."""
    receiver.answers = [told(200, answer)]
    outcome = end_incident(session(receiver), "EventLoopBlocked", 2.0)

    assert ("refused", f"Grafana at {receiver.url}/... answered no list of annotations") == (
        outcome.state,
        outcome.detail,
    )
    assert 1 == len(receiver.requests)


def test_a_silence_names_its_alert_author_and_reason(receiver: Receiver) -> None:
    """In Grafana's own Alertmanager, for exactly so long."""
    receiver.answers = [told(202, {"silenceID": "s-1"})]
    known = silence(session(receiver), "DiskFull", seconds=1800, author="me", comment="new disk", now=0.0)

    assert "s-1" == known
    (body,) = receiver.bodies()
    assert ("1970-01-01T00:00:00.000Z", "1970-01-01T00:30:00.000Z") == (body["startsAt"], body["endsAt"])
    assert ("me", "new disk") == (body["createdBy"], body["comment"])


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (told(401, {"message": "Unauthorized"}), "refused"),
        (told(403, {"message": "Permissions needed"}), "refused"),
        (told(404, {"message": "Not found"}), "refused"),
        (told(409, {"message": "conflict"}), "refused"),
        (told(429, {"message": "slow down"}), "retry"),
        (told(500, {"message": "database is locked"}), "retry"),
        (Answer(200, b"<html>log in</html>", (("Content-Type", "application/json"),)), "retry"),
    ],
)
def test_a_refusal_is_later_or_final_and_one_line(receiver: Receiver, answer: Answer, state: str) -> None:
    """As for every channel; the token is not in it."""
    receiver.answers = [answer]
    outcome = annotate(session(receiver), message())

    assert state == outcome.state
    assert "\n" not in outcome.detail
    assert "t0ken" not in outcome.detail


def test_a_grafana_that_is_slow_or_gone_is_asked_again_later(receiver: Receiver) -> None:
    """Within its time, and with its host alone."""
    receiver.answers = [Answer(seconds=1.0)]
    slow = annotate(GrafanaSession(receiver.url, "t0ken", 0.2), message())
    gone = annotate(GrafanaSession("http://127.0.0.1:9", "t0ken", 0.2), message())

    assert ("retry", "retry") == (slow.state, gone.state)
    assert "Grafana at http://127.0.0.1:9/... cannot be reached (ConnectionError)" == gone.detail
    with pytest.raises(GrafanaRefusedError):
        GrafanaSession("http://127.0.0.1:9").ask(lambda api: api.client.GET("/health"))


def test_an_alert_that_ends_closes_its_mark_from_a_thread_of_its_own(receiver: Receiver, tmp_path: Path) -> None:
    """The webhook waits for nobody; alerts about the alerting itself have no mark."""
    begun = {"id": 7, "time": 1000, "timeEnd": 1000, "tags": ["a"], "text": "t"}
    receiver.answers = [told(200, [begun]), told(200, {})]
    notifier = Notifier([], Links(), ReportStore(tmp_path), session(receiver))
    notifier.start()
    ended = ALERT | {"status": "resolved", "endsAt": "2026-11-30T08:09:00Z"}
    meta = ended | {"labels": {"alertname": "Watchdog"}}
    notifier.ended(parse_payload(PAYLOAD | {"status": "resolved", "alerts": [meta, ended]}))

    assert until(lambda: 2 == len(receiver.requests))
    notifier.stop()
    assert "PATCH" == receiver.requests[1]["method"]
    assert 1_796_026_140_000 == json.loads(receiver.requests[1]["body"])["timeEnd"]


def test_grafana_is_written_to_only_with_a_token() -> None:
    """Its address alone is for links."""
    from runbooks.notify.channels import grafana_of

    assert None is grafana_of(NotifySettings(grafana_url="http://grafana.example"))
    assert None is grafana_of(NotifySettings())
    apart = NotifySettings(
        grafana_url="http://127.0.0.1:3000", grafana_api_url="http://grafana:3000", grafana_token=SecretStr("t0ken")
    )
    written = grafana_of(apart)
    assert written is not None
    assert "http://grafana:3000/..." == written.shown
