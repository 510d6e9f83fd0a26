"""Every link of the chain is broken once, named, and told with its mend; what does not run is absent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inferdeck.result import Outcome
from inferdeck.schema import validate
from inferdeck.selftest.link import Moment
from inferdeck.selftest.places import PORT_OF_PART, Places, find_places
from inferdeck.selftest.request_links import BODY
from inferdeck.selftest.run import selftest
from inferdeck.settings import PORT_FIELDS, load_settings
from inferdeck.stack.ports import free_ports
from inferdeck.stack.process import ProcessRecord, kernel_start_ticks
from inferdeck.stack.state import PartState, StackState, write_state
from probes import RecorderSettings
from probes.folder import session_hash
from probes.plan import FIXED_INDEX, StageSpec
from probes.ringfile import open_ring
from probes.settings import Identity
from service.contract import read_request

NAMES = ["service", "row", "exporter", "prometheus", "rules", "notifier", "webhook", "trace"]
STAMP = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}


@dataclass
class Stack:
    """All parts in one small server: each does its work unless it is listed as broken."""

    ring_dir: Path
    broken: set[str] = field(default_factory=set)
    requests: int = 7
    alerts: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[str] = field(default_factory=list)
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        sizes = RecorderSettings(ring_rows=64, open_slots=4)
        self.ring = open_ring(self.ring_dir, "sentiment", Identity(host="h"), sizes, lambda _: None)
        self.ring.writer.plan._declare_all([StageSpec("model.forward")])

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """Return status and body."""
        self.seen.append((f"{method} {path}", headers, body))
        place, _, query = path.partition("?")
        parts = {
            "/v1/sentiment": self.service,
            "/metrics": self.exporter,
            "/api/v1/query": self.prometheus,
            "/api/v1/rules": self.rules,
            "/api/v1/alertmanagers": self.alertmanagers,
            "/api/v2/receivers": self.receivers,
            "/api/v2/alerts": self.notifier,
            "/webhook": self.webhook,
            "/selftests": self.selftests,
        }
        return parts[place](method, query, headers, body)

    def service(self, _method: str, _query: str, headers: dict[str, str], _body: bytes) -> tuple[int, str]:
        """Answer and record."""
        if "service" in self.broken:
            return 503, '{"error": "not_ready"}'
        name = headers["X-Session-Id"].encode()
        writer, row = self.ring.writer, self.ring.writer.plan.template.copy()
        row[FIXED_INDEX["session"]], row[FIXED_INDEX["session_hash"]] = name, session_hash(self.ring.key, name)
        row[FIXED_INDEX["start_unix_ns"]], row[FIXED_INDEX["trace_lo"]] = time.time_ns(), 5
        row[FIXED_INDEX["duration_ns"]] = 1_000_000
        columns = [column.name for column in writer.plan.revisions[-1].columns]
        if "trace" not in self.broken:
            row[columns.index("model.forward/start_ns")] = 0
        if "row" not in self.broken:
            writer.commit(row, writer.scratch)
        if "exporter" not in self.broken:
            self.requests += 1
        return 200, "{}"

    def exporter(self, *_: Any) -> tuple[int, str]:
        """Show the figures."""
        return 200, (
            "# TYPE model_requests_total counter\n"
            f'model_requests_total{{route="/v1/sentiment",outcome="ok"}} {self.requests}\n'
            "# TYPE telemetry_rows_read_total counter\n"
            f"telemetry_rows_read_total {self.requests}\n"
            "# TYPE telemetry_ring_unread_rows gauge\ntelemetry_ring_unread_rows 0\n"
        )

    def prometheus(self, *_: Any) -> tuple[int, str]:
        """Answer as of the last scrape."""
        value = self.requests - ("prometheus" in self.broken)
        return 200, json.dumps({"data": {"result": [{"value": [0, str(value)]}]}})

    def rules(self, *_: Any) -> tuple[int, str]:
        """Show the rules."""
        if "nonsense" in self.broken:
            return 200, '{"data": 7}'
        since = datetime.fromtimestamp(time.time() - (5 if "young" in self.broken else 500), UTC).isoformat()
        watchdog: dict[str, Any] = {"name": "Watchdog", "health": "ok", "state": "firing"}
        watchdog["alerts"] = [{"activeAt": since}]
        other = {"name": "ServiceDown", "health": "err" if "rules" in self.broken else "ok", "state": "inactive"}
        if "watchdog" in self.broken:
            watchdog["state"] = "inactive"
        return 200, json.dumps({"data": {"groups": [{"rules": [watchdog, other]}]}})

    def alertmanagers(self, *_: Any) -> tuple[int, str]:
        """Show what Prometheus has found."""
        return 200, json.dumps({"data": {"activeAlertmanagers": [] if "lost" in self.broken else [{"url": "x"}]}})

    def receivers(self, *_: Any) -> tuple[int, str]:
        """Show the receivers."""
        return 200, json.dumps([{"name": "page"}, *([] if "notifier" in self.broken else [{"name": "selftest"}])])

    def notifier(self, method: str, query: str, _headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """Take alerts and send them on."""
        if method == "GET":
            if "Watchdog" in query:
                if self.broken & {"young", "unsaid"}:
                    return 200, "[]"
                return 200, json.dumps([{"receivers": [{"name": "dead_man"}]}])
            receiver = "page" if "routed" in self.broken else "selftest"
            return 200, json.dumps([{"receivers": [{"name": receiver}]}] * len(self.alerts))
        self.alerts += json.loads(body)
        if "webhook" not in self.broken:
            self.arrived.append(self.alerts[-1]["labels"]["selftest"])
        return 200, ""

    def webhook(self, _method: str, _query: str, _headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """Take a notification."""
        self.arrived += [one["labels"]["selftest"] for one in json.loads(body)["alerts"]]
        return 202, "{}"

    def selftests(self, *_: Any) -> tuple[int, str]:
        """Show what arrived."""
        return 200, json.dumps({"selftests": [{"id": one} for one in self.arrived]})


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A stack's rows; nothing serves yet."""
    stack = Stack(tmp_path / "rows")
    yield stack
    stack.ring.close()


@pytest.fixture
def places(stack: Stack) -> Iterator[Places]:
    """Serve the stack on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, text = stack.answer(self.command, self.path, dict(self.headers), self.rfile.read(length))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815  # the name that http.server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield Places(dict.fromkeys(PORT_OF_PART, url), {}, recorded=True, ring_dir=stack.ring_dir)
        server.shutdown()
        thread.join()


def hurried() -> Moment:
    """Return clocks that pass while nobody waits."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Moment(tick=lambda: now[0], sleep=sleep)


def run(places: Places) -> Outcome:
    """Run a self-test and see that its result has the shape."""
    outcome = selftest(places, scrape_limit_seconds=12.0, moment=hurried())
    validate("selftest", STAMP | outcome.payload)
    assert NAMES == [check["name"] for check in outcome.payload["checks"]]
    return outcome


def states(outcome: Outcome) -> dict[str, str]:
    """Return the state of each link."""
    return {check["name"]: check["state"] for check in outcome.payload["checks"]}


def test_a_sound_stack_has_no_broken_link(stack: Stack, places: Places) -> None:
    """Exit 0, the trace is there, the request bears its mark, and the alert starts no triage in any version."""
    outcome = run(places)

    assert dict.fromkeys(NAMES, "ok") == states(outcome)
    assert (0, None) == (outcome.code, outcome.payload["broken"])
    assert outcome.payload["session_id"] == outcome.payload["trace"]["session_id"]
    headers = next(headers for path, headers, _ in stack.seen if path == "POST /v1/sentiment")
    assert "inferdeck-selftest" == headers["X-Client-Release"]
    (alert,) = stack.alerts
    assert {"slug": "selftest", "kind": "meta", "severity": "info"}.items() <= alert["labels"].items()


@pytest.mark.parametrize(
    ("fault", "link", "absent"),
    [
        ("service", "service", {"row", "exporter", "prometheus", "trace"}),
        ("row", "row", set()),
        ("exporter", "exporter", {"prometheus"}),
        ("prometheus", "prometheus", set()),
        ("rules", "rules", set()),
        ("watchdog", "rules", set()),
        ("unsaid", "rules", set()),
        ("young lost", "rules", set()),
        ("notifier", "notifier", set()),
        ("routed", "notifier", set()),
        ("webhook", "webhook", set()),
        ("trace", "trace", set()),
    ],
)
def test_the_first_broken_link_is_named(fault: str, link: str, absent: set[str], stack: Stack, places: Places) -> None:
    """With a mend; links that hang on it are absent, the other way is tested all the same."""
    stack.broken = set(fault.split())

    outcome = run(places)

    assert (1, link) == (outcome.code, outcome.payload["broken"])
    (broken,) = [check for check in outcome.payload["checks"] if check["name"] == link]
    assert broken["mend"]
    found = states(outcome)
    assert absent == {name for name, state in found.items() if state == "absent"}
    # the row that is missing is missed by the trace as well
    assert {link} | ({"trace"} if fault == "row" else set()) == {n for n, state in found.items() if state == "fail"}


def test_a_stack_of_the_last_minute_is_not_broken(stack: Stack, places: Places) -> None:
    """An alert that was evaluated before Alertmanager was found is repeated after a minute: it is said, not blamed."""
    stack.broken = {"young"}

    outcome = run(places)

    assert 0 == outcome.code
    assert "within a minute" in outcome.payload["checks"][4]["detail"]


def test_an_alert_that_would_wake_somebody_is_not_posted(stack: Stack, places: Places) -> None:
    """An Alertmanager without the self-test's route gets nothing; the webhook is tested directly."""
    stack.broken = {"notifier"}

    outcome = run(places)

    assert [] == stack.alerts
    assert "directly" in outcome.payload["checks"][6]["detail"]


@pytest.mark.parametrize("gone", [{"prometheus"}, {"alertmanager"}, {"prometheus", "alertmanager"}, {"triage"}])
def test_what_is_not_part_of_the_stack_is_absent(gone: set[str], places: Places) -> None:
    """Exit 0: nothing is broken. Without a notifier the webhook is reached directly."""
    links = {"prometheus": {"prometheus", "rules"}, "alertmanager": {"notifier"}, "triage": {"webhook"}}

    outcome = run(replace(places, left_out=dict.fromkeys(gone, "not found")))

    assert 0 == outcome.code
    wanted = set().union(*(links[part] for part in gone))
    assert wanted == {name for name, state in states(outcome).items() if state == "absent"}


@pytest.mark.parametrize(("recorded", "state"), [(True, "fail"), (False, "absent")])
def test_a_part_that_does_not_answer_is_broken_if_it_was_started(places: Places, recorded: bool, state: str) -> None:
    """A service that runs alone is no broken stack; a dead service is one in any case."""
    dead = f"http://127.0.0.1:{free_ports(1)[0]}"
    silent = {name: dead for name in PORT_OF_PART if name != "service"}

    outcome = run(replace(places, urls=places.urls | silent, recorded=recorded))

    wanted = {"exporter": state, "rules": state, "notifier": state, "webhook": state, "prometheus": "absent"}
    assert wanted | {"service": "ok", "row": "ok", "trace": "ok"} == states(outcome)
    assert "fail" == states(run(replace(places, urls=dict.fromkeys(PORT_OF_PART, dead), recorded=recorded)))["service"]


def test_nonsense_is_a_broken_link_and_not_the_end(stack: Stack, places: Places) -> None:
    """A stranger on a part's port answers what it likes."""
    stack.broken = {"nonsense"}

    outcome = run(places)

    assert "rules" == outcome.payload["broken"]
    assert "cannot be read" in outcome.payload["checks"][4]["detail"]


def test_places_come_from_the_running_stack_or_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was started elsewhere than the settings say is found where it is."""
    monkeypatch.delenv("INFERDECK_RING_DIR", raising=False)
    ports = dict(zip(PORT_FIELDS, free_ports(len(PORT_FIELDS)), strict=True))
    settings = load_settings(**ports, state_dir=tmp_path / "state", ring_dir=tmp_path / "rows")
    before = find_places(settings)
    me = threading.get_native_id()
    record = ProcessRecord("service", me, kernel_start_ticks(me) or 0, "", ("x",), "log", 0.0)
    parts = [
        PartState("service", 1, "http://127.0.0.1:1", "http://127.0.0.1:1/h", record),
        PartState("prometheus", 2, "http://127.0.0.1:2", "", left_out="not found"),
    ]
    write_state(StackState(str(settings.state_path), str(tmp_path / "rows"), 0.0, parts=parts))

    after = find_places(settings)

    assert (False, f"http://127.0.0.1:{ports['triage_port']}") == (before.recorded, before.urls["triage"])
    assert (True, {"prometheus": "not found"}) == (after.recorded, after.left_out)
    assert "http://127.0.0.1:1" == after.urls["service"]


def test_the_request_keeps_the_contract() -> None:
    """The service would refuse another one, and the self-test would call it broken."""
    assert BODY["text"] == read_request(json.dumps(BODY).encode()).text


def test_waiting_ends_in_time() -> None:
    """A link that never comes is asked for as long as it may take, and once at least."""
    moment, asked = hurried(), []

    def never() -> None:
        asked.append(1)

    assert moment.wait_for(never, 1.0, 0.3) is None
    assert moment.wait_for(never, 0.0, 0.3) is None
    assert 5 == len(asked)
