"""From a kept result to a message, and back into the report what became of it; in the running service as well."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from runbooks.inbox import Inbox, Incident
from runbooks.notify import notifier as module
from runbooks.notify.delivery import Channel
from runbooks.notify.message import Message
from runbooks.notify.notifier import FollowUpCounter, Notifier
from runbooks.notify.outcome import Outcome, refused, sent
from runbooks.payloads import parse_payload
from runbooks.report import render
from runbooks.store import ReportStore
from runbooks.watch import TriageWatch
from tests.runbooks.notify.conftest import LINKS, RESULT, Answer, Receiver, result_of

ROOT = Path(__file__).resolve().parents[3]
ALERT: dict[str, Any] = {
    "status": "firing",
    "labels": {"alertname": "EventLoopBlocked"},
    "annotations": {},
    "startsAt": "2026-11-30T08:02:30Z",
    "fingerprint": "f1",
    "panelURL": "http://grafana.example/d/inferdeck-overview?viewPanel=3",
}
PAYLOAD = {"version": "1", "status": "firing", "groupKey": "g", "alerts": [ALERT]}


def until(true: Callable[[], object], seconds: float = 20) -> bool:
    """Wait and tell whether it came about."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(true())


def made(tmp_path: Path, send: Callable[[Message], Outcome]) -> tuple[Notifier, TriageWatch, Incident]:
    """Return a notifier with one channel, the watch that tells it, and an incident that waits."""
    store = ReportStore(tmp_path / "reports")
    notifier = Notifier([Channel("slack", send)], LINKS, store)
    kept = {key: value for key, value in RESULT.items() if key not in {"id", "report"}}
    watch = TriageWatch(
        Inbox(tmp_path / "triage"), store, lambda _alert, _at: kept | {"report": None}, tell=notifier.tell
    )
    (incident,) = watch.inbox.accept(parse_payload(PAYLOAD))
    return notifier, watch, incident


def test_a_finished_triage_is_told_and_the_report_says_so(tmp_path: Path) -> None:
    """With the panel that the alert came with, and the id under which the report is found."""
    told: list[Message] = []

    def send(message: Message) -> Outcome:
        told.append(message)
        return sent()

    notifier, watch, incident = made(tmp_path, send)
    notifier.start()
    watch.work(incident)
    (report_id,) = watch.store.ids()

    assert until(lambda: "follow_ups" in (watch.store.load(report_id) or {}))
    notifier.stop()
    (entry,) = (watch.store.load(report_id) or {})["follow_ups"]
    assert ("slack", "sent", "") == (entry["channel"], entry["result"], entry["detail"])
    assert "http://grafana.example/d/inferdeck-overview?viewPanel=3" == dict(told[0].links)["Dashboard"]
    assert f"http://triage.example/reports/{report_id}" == dict(told[0].links)["Report"]


def test_a_loss_is_seen_in_figures_and_in_the_report(tmp_path: Path) -> None:
    """Whoever reads either knows that nobody was told."""
    notifier, watch, incident = made(tmp_path, lambda _message: refused("HTTP 404: no_service"))
    registry = CollectorRegistry()
    registry.register(FollowUpCounter(notifier))
    notifier.start()
    watch.work(incident)
    (report_id,) = watch.store.ids()
    assert until(lambda: "follow_ups" in (watch.store.load(report_id) or {}))
    notifier.stop()

    kept = watch.store.load(report_id) or {}
    (entry,) = kept["follow_ups"]
    assert "told by slack: refused, NOT SENT: HTTP 404: no_service" in render(kept)
    assert ("refused", "HTTP 404: no_service") == (entry["result"], entry["detail"])
    figures = generate_latest(registry).decode()
    assert 'telemetry_triage_follow_ups_total{channel="slack",result="refused"} 1.0' in figures
    assert 'telemetry_triage_follow_ups_total{channel="slack",result="sent"} 0.0' in figures
    assert 'telemetry_triage_waiting_follow_ups{channel="slack"} 0.0' in figures


def test_a_result_that_no_message_can_be_made_of_costs_nothing_else(tmp_path: Path) -> None:
    """The report is kept, and the thread goes on to the next incident."""
    notifier, watch, incident = made(tmp_path, lambda _message: sent())
    notifier.tell(incident, {"alert": "EventLoopBlocked"})

    assert 0 == len(notifier.delivery.workers[0])
    watch.work(incident)
    assert 1 == watch.runs["named"]
    notifier.stop()


def test_an_end_that_cannot_be_written_does_not_end_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next alert's end is still written, and the first one's loss is said."""
    ended: list[float] = []

    def end(_session: object, _alert: str, ended_at: float) -> Outcome:
        ended.append(ended_at)
        if len(ended) == 1:
            raise KeyError("by hand")
        return sent()

    monkeypatch.setattr(module, "end_incident", end)
    grafana: Any = object()
    notifier = Notifier([], LINKS, ReportStore(tmp_path), grafana)
    notifier.start()
    for minute in (8, 9):
        over = ALERT | {"status": "resolved", "endsAt": f"2026-11-30T08:0{minute}:00Z"}
        notifier.ended(parse_payload(PAYLOAD | {"status": "resolved", "alerts": [over]}))

    assert until(lambda: 2 == len(ended), 5)
    notifier.stop()
    assert ["the annotation of EventLoopBlocked keeps no end"] == [one.getMessage() for one in caplog.records]


def test_a_listener_that_breaks_causes_no_second_triage(tmp_path: Path) -> None:
    """The report is kept by then, and the incident done."""

    def broken(_incident: Incident, _result: object) -> None:
        raise RuntimeError("by hand")

    store = ReportStore(tmp_path / "reports")
    watch = TriageWatch(Inbox(tmp_path / "triage"), store, lambda _alert, _at: dict(RESULT), tell=broken)
    (incident,) = watch.inbox.accept(parse_payload(PAYLOAD))
    watch.work(incident)

    assert (1, 1, 0) == (watch.runs["named"], len(store.ids()), len(watch.inbox))


def test_a_report_in_memory_alone_is_told_as_well(tmp_path: Path) -> None:
    """A full disk is an incident of its own."""
    told: list[Message] = []

    def send(message: Message) -> Outcome:
        told.append(message)
        return sent()

    notifier, watch, incident = made(tmp_path, send)
    (tmp_path / "reports").write_text("in the way")
    notifier.start()
    watch.work(incident)

    assert until(lambda: told)
    notifier.stop()
    assert "not kept on disk" == dict(told[0].links)["Report"]


def test_an_incident_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Files that wait on disk do not know the panel yet."""
    first = Inbox(tmp_path)
    first.accept(parse_payload(PAYLOAD))
    (path,) = tmp_path.glob("*.incident")
    known = json.loads(path.read_bytes())
    assert "http://grafana.example/d/inferdeck-overview?viewPanel=3" == known.pop("panel_url")
    path.write_text(json.dumps(known), encoding="utf-8")

    again = Inbox(tmp_path).oldest(0.1)
    assert again is not None
    assert "" == again.panel_url


@pytest.mark.parametrize("address", ["javascript:alert(1)", 7, None, "http://x/" + "y" * 2000, "http://x/\n"])
def test_a_panel_that_is_no_address_is_left_out(address: object) -> None:
    """It would stand as a link in a message."""
    payload = PAYLOAD | {"alerts": [ALERT | {"panelURL": address}]}

    assert "" == parse_payload(payload).alerts[0].panel_url


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_service_follows_up_after_its_triage(tmp_path: Path, receiver: Receiver) -> None:
    """The real process: an alert in, a message out after one failure, and no secret in any log."""
    port = free_port()
    receiver.answers = [Answer(503, b"later"), Answer(200, b"ok")]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("INFERDECK_")} | {
        "INFERDECK_STATE_DIR": str(tmp_path),
        "INFERDECK_RING_DIR": str(tmp_path / "rings"),
        "INFERDECK_PROMETHEUS_URL": "http://127.0.0.1:9",
        "INFERDECK_TRIAGE_PORT": str(port),
        "INFERDECK_NOTIFY_SLACK_URL": f"{receiver.url}/services/hush-hush",
    }
    process = subprocess.Popen([sys.executable, "-m", "runbooks"], env=environ, cwd=ROOT, stderr=subprocess.PIPE)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=5)

    def is_up() -> bool:
        try:
            return client.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    def followed() -> bool:
        listed = client.get("/reports").json()["reports"]
        return bool(listed) and "follow_ups" in client.get(f"/reports/{listed[0]['id']}").json()

    try:
        assert until(is_up, 30)
        assert 202 == client.post("/webhook", json=PAYLOAD).status_code
        assert until(followed, 30)
        figures = client.get("/metrics").text
        page = client.get("/runbooks/EventLoopBlocked.md")
        lost = [client.get(f"/runbooks/{name}").status_code for name in ("x.md", "..%2Fapp.py", "app.py")]
    finally:
        client.close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)

    assert 0 == process.returncode, errors.decode()
    assert 2 == len(receiver.requests)
    assert "/services/hush-hush" == receiver.requests[1]["path"]
    assert "inferdeck: EventLoopBlocked: no cause named" in receiver.requests[1]["body"].decode()
    assert f"http://127.0.0.1:{port}/runbooks/EventLoopBlocked.md" in receiver.requests[1]["body"].decode()
    assert 'telemetry_triage_follow_ups_total{channel="slack",result="sent"} 1.0' in figures
    assert (200, [404, 404, 404]) == (page.status_code, lost)
    assert (ROOT / "runbooks/EventLoopBlocked.md").read_text(encoding="utf-8") == page.text
    assert "hush-hush" not in errors.decode()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()]


def test_results_are_in_the_triage_verbs_shape() -> None:
    """What these tests send is what the engine returns, follow-ups included."""
    entry = {"channel": "slack", "result": "sent", "detail": "", "at": "2026-11-30T08:03:10+00:00"}

    assert result_of(follow_ups=[entry])["follow_ups"] == [entry]
