"""The pages of the triage service, over real sockets and files."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from runbooks.engine import triage
from runbooks.inbox import Inbox
from runbooks.store import ReportStore
from runbooks.watch import TriageWatch
from runbooks.webhook import make_app

BODY = {
    "version": "4",
    "status": "firing",
    "groupKey": "g",
    "truncatedAlerts": 0,
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "EventLoopBlocked"},
            "annotations": {},
            "startsAt": "2026-11-30T08:02:30Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "fingerprint": "f1",
        }
    ],
}


def verdict(alert: str, at: float) -> Mapping[str, Any]:
    """Stand for the engine."""
    return {
        "alert": alert,
        "at": at,
        "abstained": False,
        "verdict": {"slug": "event_loop_blocked"},
        "window": {},
        "session_id": "a-session-of-somebody",
    }


def watch(folder: Path, triage: Callable[[str, float], Mapping[str, Any]] = verdict, **options: Any) -> TriageWatch:
    """Return a watch over a state folder."""
    return TriageWatch(Inbox(folder / "triage", **options), ReportStore(folder / "reports"), triage, retry_seconds=0.01)


@contextmanager
def served(watching: TriageWatch, token: str | None = None) -> Iterator[httpx.Client]:
    """Serve on a free port and give a client for it."""
    server = uvicorn.Server(
        uvicorn.Config(make_app(watching, token), port=0, log_level="error", lifespan="off", log_config=None)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    watching.start()
    thread.start()
    until = time.monotonic() + 10
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(10)
        watching.stop()


def eventually(ask: Callable[[], Any]) -> Any:
    """Return the first true answer, within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if found := ask():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come about within ten seconds")


def test_a_notification_becomes_a_kept_report(tmp_path: Path) -> None:
    """POST /webhook answers 202, and the report can be had by list and by id, with what triggered it."""
    with served(watch(tmp_path)) as client:
        assert 202 == client.post("/webhook", json=BODY).status_code
        listed = eventually(lambda: client.get("/reports").json()["reports"])
        report = client.get(f"/reports/{listed[0]['id']}").json()

    assert "EventLoopBlocked" == report["alert"]
    assert {"sender": "alertmanager", "alerts": 1, "truncated": 0}.items() <= report["trigger"].items()
    # half a minute after the alert's start is what is looked at
    assert 1_796_025_780.0 == report["at"]
    assert report["session_id"].startswith("sha256:")


def test_a_browser_is_shown_pages_and_a_program_gets_json(tmp_path: Path, world: Callable[..., Any]) -> None:
    """The same addresses: what a notification links to is read by people."""
    here = world(block_seconds=0.2, block_share=0.05)
    found = triage(here.sources(), at=here.until, clock=lambda: here.until)
    asks = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with served(watch(tmp_path, lambda _alert, _at: found)) as client:
        client.post("/webhook", json=BODY)
        listed = eventually(lambda: client.get("/reports").json()["reports"])
        address = f"/reports/{listed[0]['id']}"
        shown, plain = client.get(address, headers=asks), client.get(address, headers={"accept": "*/*"})
        overview = client.get("/reports", headers=asks)

    assert shown.headers["content-type"].startswith("text/html")
    assert "<svg" in shown.text
    assert "event_loop_blocked" == plain.json()["verdict"]["slug"]
    assert address.removeprefix("/") in overview.text


def test_a_repeated_notification_starts_nothing_new(tmp_path: Path) -> None:
    """Alertmanager repeats; one report is made, and each repeat is answered 202."""
    with served(watch(tmp_path)) as client:
        codes = [client.post("/webhook", json=BODY).status_code for _ in range(5)]
        eventually(lambda: client.get("/reports").json()["reports"])
        time.sleep(0.1)
        reports = client.get("/reports").json()["reports"]

    assert [202] * 5 == codes
    assert 1 == len(reports)


def test_the_answer_does_not_wait_for_the_triage(tmp_path: Path) -> None:
    """While a triage runs, the sender has its answer, and health is told."""
    going, goes = threading.Event(), threading.Event()

    def slow(alert: str, at: float) -> Mapping[str, Any]:
        going.set()
        goes.wait(10)
        return verdict(alert, at)

    with served(watch(tmp_path, slow)) as client:
        code = client.post("/webhook", json=BODY).status_code
        assert going.wait(10)
        health = client.get("/healthz")
        goes.set()

    assert (202, 200, {"status": "ok", "waiting": 1}) == (code, health.status_code, health.json())


def test_a_restart_in_the_middle_of_a_triage_loses_nothing(tmp_path: Path) -> None:
    """What was accepted before the end of the process is triaged by the next one."""
    first = watch(tmp_path)
    first.inbox.accept(_read(BODY))  # accepted, then the process ends: its thread never ran

    with served(watch(tmp_path)) as client:
        assert eventually(lambda: client.get("/reports").json()["reports"])

    assert [] == list((tmp_path / "triage").glob("*.incident"))


def test_a_triage_that_fails_is_tried_again_then_counted_and_the_next_goes_on(tmp_path: Path) -> None:
    """One incident that cannot be triaged does not stop the others."""
    tries: list[str] = []

    def picky(alert: str, at: float) -> Mapping[str, Any]:
        tries.append(alert)
        if alert == "Bad":
            raise RuntimeError("by hand")
        return verdict(alert, at)

    bad = json.loads(json.dumps(BODY).replace("EventLoopBlocked", "Bad").replace('"f1"', '"f2"'))
    with served(watch(tmp_path, picky)) as client:
        client.post("/webhook", json=bad)
        client.post("/webhook", json=BODY)
        eventually(lambda: client.get("/healthz").json()["waiting"] == 0)
        reports = client.get("/reports").json()["reports"]
        figures = client.get("/metrics").text

    assert 3 == tries.count("Bad")
    assert {"EventLoopBlocked", "Bad"} == {one["alert"] for one in reports}
    assert 'telemetry_triage_runs_total{result="failed"} 1.0' in figures
    assert 'telemetry_triage_runs_total{result="named"} 1.0' in figures


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (json.dumps(BODY | {"version": "9"}).encode(), 400),
        (b"x" * (2 * 2**20 + 1), 413),
    ],
)
def test_bad_payloads_are_refused_and_counted(tmp_path: Path, body: bytes, status: int) -> None:
    """Malformed, unknown and huge payloads get a 4xx with the reason; the service goes on."""
    with served(watch(tmp_path)) as client:
        answer = client.post("/webhook", content=body)
        good = client.post("/webhook", json=BODY).status_code
        figures = client.get("/metrics").text

    assert (status, 202) == (answer.status_code, good)
    assert answer.json()["error"]
    assert 'telemetry_triage_notifications_total{result="refused"} 1.0' in figures


def test_a_token_is_asked_for_when_set(tmp_path: Path) -> None:
    """Without the token neither notifications nor reports; with it both; health and figures stay open."""
    token = "good-token"
    right = {"authorization": f"Bearer {token}"}
    wrong = httpx.Headers([(b"authorization", "Bearer bad-tök".encode("latin-1"))])
    with served(watch(tmp_path), token) as client:
        codes = [client.post("/webhook", json=BODY, headers=one).status_code for one in ({}, wrong, right)]
        reports = [client.get("/reports", headers=one).status_code for one in ({}, right)]
        single = client.get("/reports/20261130T080230Z-00000000").status_code
        open_pages = [client.get(page).status_code for page in ("/healthz", "/metrics")]

    assert ([401, 401, 202], [401, 200], 401, [200, 200]) == (codes, reports, single, open_pages)


def test_a_full_inbox_asks_the_sender_to_try_again(tmp_path: Path) -> None:
    """503 makes Alertmanager retry; nothing is lost and nothing grows without bound."""
    blocker = threading.Event()

    def slow(alert: str, at: float) -> Mapping[str, Any]:
        blocker.wait(10)
        return verdict(alert, at)

    second = json.loads(json.dumps(BODY).replace('"f1"', '"f2"'))
    with served(watch(tmp_path, slow, most=1)) as client:
        codes = [client.post("/webhook", json=one).status_code for one in (BODY, second)]
        blocker.set()
        eventually(lambda: client.get("/healthz").json()["waiting"] == 0)
        codes.append(client.post("/webhook", json=second).status_code)

    assert [202, 503, 202] == codes


@pytest.mark.parametrize("page", ["/reports", "/selftests", "/healthz", "/metrics"])
def test_foreign_host_names_are_refused_on_loopback(tmp_path: Path, page: str) -> None:
    """A page in a browser must neither read reports nor post alerts by a name that it pointed at 127.0.0.1."""
    foreign, known = {"host": "evil.example:9465"}, {"host": "localhost:9465"}
    with served(watch(tmp_path)) as client:
        read = [client.get(page, headers=one).status_code for one in (foreign, known)]
        posted = [client.post("/webhook", json=BODY, headers=one).status_code for one in (foreign, known)]

    assert ([400, 200], [400, 202]) == (read, posted)


@pytest.mark.parametrize("report_id", ["nope", "..%2f..%2fetc%2fpasswd", "20261130T080230Z-00000000"])
def test_an_unknown_report_is_not_found(tmp_path: Path, report_id: str) -> None:
    """Ids that are none, paths among them, are 404."""
    with served(watch(tmp_path)) as client:
        assert 404 == client.get(f"/reports/{report_id}").status_code


def _read(body: Mapping[str, Any]) -> Any:
    from runbooks.payloads import parse_payload

    return parse_payload(body)


def selftest(**labels: str) -> dict[str, Any]:
    """Return the notification of a self-test."""
    body: dict[str, Any] = json.loads(json.dumps(BODY))
    marks = {"alertname": "InferdeckSelftest", "slug": "selftest", "selftest": "0123456789abcdef"}
    body["alerts"][0]["labels"] = marks | labels
    return body


def test_a_self_test_is_acknowledged_and_starts_no_triage(tmp_path: Path) -> None:
    """Its id is shown with the time and counted; no incident, no report."""
    watching = watch(tmp_path)
    with served(watching) as client:
        answer = client.post("/webhook", json=selftest())
        shown = client.get("/selftests").json()["selftests"]
        figures = client.get("/metrics").text
        reports = client.get("/reports").json()["reports"]

    assert (202, []) == (answer.status_code, answer.json()["incidents"])
    assert [("0123456789abcdef", "alertmanager")] == [(one["id"], one["sender"]) for one in shown]
    assert 'telemetry_triage_notifications_total{result="selftest"} 1.0' in figures
    assert [] == reports


def test_only_the_last_self_tests_are_remembered(tmp_path: Path) -> None:
    """Whoever may post may not fill the memory; a label that is no run's id makes an ordinary alert of it."""
    with served(watch(tmp_path)) as client:
        for number in range(40):
            client.post("/webhook", json=selftest(selftest=f"{number:016x}"))
        shown = client.get("/selftests").json()["selftests"]
        incidents = client.post("/webhook", json=selftest(selftest="no id")).json()["incidents"]

    assert [f"{number:016x}" for number in range(8, 40)] == [one["id"] for one in shown]
    assert 1 == len(incidents)


def test_self_tests_are_shown_to_those_with_the_token(tmp_path: Path) -> None:
    """As every other page that tells about notifications."""
    with served(watch(tmp_path), token="t" * 16) as client:
        assert 401 == client.get("/selftests").status_code
