from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from exporters.exporter import Exporter
from exporters.serving import CannotStartError
from exporters.settings import ExporterSettings
from exporters.web import make_app

if TYPE_CHECKING:
    from tests.exporters.conftest import Flight

SESSION = "session-0123456789ab"


@pytest.fixture
def start(ring_dir: Path, tmp_path: Path) -> Iterator[Callable[..., Exporter]]:
    """Start exporters on *ring_dir*; they are stopped at the end."""
    running: list[Exporter] = []

    def begin(**options: Any) -> Exporter:
        exporter = Exporter(ExporterSettings(**{"ring_dir": ring_dir, "state_dir": tmp_path / "state", **options}))
        exporter.start()
        running.append(exporter)
        return exporter

    yield begin
    for exporter in running:
        exporter.stop()


async def ask(exporter: Exporter, path: str, host: str = "127.0.0.1", **headers: str) -> httpx.Response:
    """Ask the web application, without a socket."""
    transport = httpx.ASGITransport(make_app(exporter))
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
        return await client.get(path, headers=headers)


def get(exporter: Exporter, path: str, host: str = "127.0.0.1", **headers: str) -> httpx.Response:
    """Ask from plain code."""
    import anyio

    async def run() -> httpx.Response:
        return await ask(exporter, path, host, **headers)

    return anyio.run(run)


def test_metrics_are_fresh_and_negotiated(start: Callable[..., Exporter], fly: Callable[..., Flight]) -> None:
    """Rows written a moment before the scrape are in it, in the format that the scraper accepts."""
    exporter = start(tick_seconds=60)
    fly().row()
    answer = get(exporter, "/metrics")
    assert 'model_requests_total{outcome="ok",route="/v1/sentiment"} 1.0' in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    openmetrics = get(exporter, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


def test_look_ups_have_the_shape_of_results(start: Callable[..., Exporter], fly: Callable[..., Flight]) -> None:
    """By session, trace, slowness and error."""
    exporter = start()
    flight = fly()
    flight.row(stages={"model.forward": (1, 2)})
    flight.row(outcome=2)
    answer = get(exporter, f"/api/traces?session_id={SESSION}").json()
    assert {"query", "sources", "lookup_s", "traces", "result", "kept_since", "unreadable"} == set(answer)
    assert ("found", []) == (answer["result"], answer["unreadable"])
    assert answer["sources"] == ["ring", "archive"]
    assert len(answer["traces"]) == 2
    trace_id = answer["traces"][0]["trace_id"]
    assert len(get(exporter, f"/api/traces?trace_id={trace_id}").json()["traces"]) == 1
    assert len(get(exporter, "/api/traces?slow=1").json()["traces"]) == 1
    assert [view["status"] for view in get(exporter, "/api/traces?errors=1").json()["traces"]] == ["error"]
    assert get(exporter, "/api/traces?slow=5&since=15m").json()["traces"] == []
    assert get(exporter, "/api/traces?slow=5").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "slow=1&errors=1",
        "slow=0",
        "slow=-1",
        "slow=99999",
        "slow=x",
        "slow=1&since=soon",
        "session_id=" + "x" * 20_000,
        "other=1",
    ],
)
def test_bad_queries_are_400_with_a_reason(start: Callable[..., Exporter], query: str) -> None:
    """Never a 500."""
    answer = get(start(), f"/api/traces?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("session_id", ["%27%22%0a", "%ff%fe", "", "x" * 10_240])
def test_odd_session_ids_are_not_found(
    start: Callable[..., Exporter], fly: Callable[..., Flight], session_id: str
) -> None:
    """Safe, and an empty answer."""
    fly().row()
    answer = get(start(), f"/api/traces?session_id={session_id}")
    assert (answer.status_code, answer.json()["traces"]) == (200, [])


def test_a_token_guards_the_api_only(start: Callable[..., Exporter]) -> None:
    """With a token set, look-up asks for it; Prometheus does not need it."""
    exporter = start(host="0.0.0.0", api_token="open sesame")  # noqa: S106
    assert get(exporter, "/api/traces?slow=1").status_code == 401
    assert get(exporter, "/api/traces?slow=1", authorization="Bearer wrong").status_code == 401
    assert get(exporter, "/api/traces?slow=1", authorization="Bearer open sesame").status_code == 200
    assert get(exporter, "/metrics", host="exporter.monitoring").status_code == 200


def test_foreign_host_names_are_refused_on_loopback(start: Callable[..., Exporter]) -> None:
    """A page in a browser must not reach session ids by a name that it pointed at 127.0.0.1."""
    exporter = start()
    assert get(exporter, "/api/traces?slow=1", host="evil.example").status_code == 400
    assert get(exporter, "/api/traces?slow=1", host="localhost").status_code == 200


def test_health_tells_how_it_is_going(start: Callable[..., Exporter]) -> None:
    """Ok while it looks at the rows, stuck when it does not."""
    exporter = start()
    answer = get(exporter, "/healthz")
    assert (answer.status_code, answer.json()["status"], answer.json()["ring_dir_exists"]) == (200, "ok", False)
    assert answer.json()["state"] == "none found, counting from now on"
    exporter._ticked_at -= 100
    assert get(exporter, "/healthz").status_code == 503


def test_health_tells_a_sender_that_stopped(start: Callable[..., Exporter]) -> None:
    """Without its thread no span is ever sent again, and whoever restarts what is unhealthy must be told."""
    exporter = start(otlp_endpoint="http://127.0.0.1:9")
    assert get(exporter, "/healthz").json()["otlp"] == "on"
    assert exporter.sender is not None
    exporter.sender.stop(0.0)
    answer = get(exporter, "/healthz")
    assert (answer.status_code, answer.json()["status"], answer.json()["otlp"]) == (503, "stuck", "stopped")


def test_what_a_killed_exporter_left_half_written_is_removed(start: Callable[..., Exporter], tmp_path: Path) -> None:
    """Each kill in the middle of a write leaves a file; they must not add up."""
    (tmp_path / "state").mkdir(mode=0o700)
    left = tmp_path / "state" / f".exporter.state.{'0a' * 8}"
    left.touch()
    start()
    assert not left.exists()


def test_a_second_exporter_on_the_same_state_is_refused(start: Callable[..., Exporter], tmp_path: Path) -> None:
    """Two would write one state file in turn; the message says what to do."""
    start()
    with pytest.raises(CannotStartError, match="another exporter"):
        Exporter(ExporterSettings(ring_dir=tmp_path, state_dir=tmp_path / "state"))
    (tmp_path / "file").touch()
    with pytest.raises(CannotStartError, match="INFERDECK_STATE_DIR"):
        Exporter(ExporterSettings(ring_dir=tmp_path, state_dir=tmp_path / "file"))


def test_a_state_that_cannot_be_written_is_counted(start: Callable[..., Exporter], tmp_path: Path) -> None:
    """The exporter counts on and says so; once it can write again, it does."""
    exporter = start(state_seconds=0, tick_seconds=60)
    (tmp_path / "state" / "exporter.state").unlink()
    (tmp_path / "state" / "exporter.state").mkdir()
    exporter.tick()
    assert exporter.state.totals.value("telemetry_state_write_errors_total", "unwritable") == 1
    (tmp_path / "state" / "exporter.state").rmdir()
    exporter.tick()
    assert (tmp_path / "state" / "exporter.state").is_file()


def test_a_damaged_state_is_said_and_counted_from_the_head(
    start: Callable[..., Exporter], fly: Callable[..., Flight], tmp_path: Path
) -> None:
    """What is skipped is a figure; health says why."""
    fly().row()
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "exporter.state").write_bytes(b"rubbish")
    exporter = start()
    assert "unreadable" in exporter.state_note
    assert exporter.state.totals.value("telemetry_rows_lost_total", "no_state") == 1


@pytest.mark.parametrize("text", ["", "m", "-5m", "5 m", "99999999999s", "١٥m"])
def test_other_durations_are_refused(start: Callable[..., Exporter], text: str) -> None:
    """With what would be right."""
    answer = get(start(), f"/api/traces?errors=1&since={quote(text)}")
    assert (400, "since: write a duration such as 90s, 15m, 2h or 1d") == (answer.status_code, answer.json()["error"])
