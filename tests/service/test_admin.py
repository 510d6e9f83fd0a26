"""Health and metrics from their own thread, also while the service's loop is blocked."""

from __future__ import annotations

import asyncio
import json
import os
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.admin import bind
from service.artifacts import ArtifactsMissing
from service.lifecycle import PHASES

pytestmark = pytest.mark.anyio


def get(port: int, path: str) -> tuple[int, bytes]:
    """Ask the admin port, from a thread of the test or the blocked loop's own."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


async def ask(app: Any, path: str) -> tuple[int, dict[str, Any]]:
    """Return status and document of a health path."""
    status, body = await asyncio.to_thread(get, app.state.worker.admin.port, path)
    document: dict[str, Any] = json.loads(body)
    return status, document


async def test_answers_while_the_loop_is_blocked(serve: Any) -> None:
    """Called from the loop's own thread, which is blocked by the very call, it still answers and tells the age."""
    async with serve(live_tick_limit_seconds=0.6) as (_client, app):
        port = app.state.worker.admin.port
        await asyncio.sleep(0.01)
        # get() itself blocks the loop: no await between these calls.
        early = get(port, "/healthz/live")
        time.sleep(1.2)  # noqa: ASYNC251 - a blocked loop is what this is about
        late = get(port, "/healthz/live")
        ready = get(port, "/healthz/ready")
        await asyncio.sleep(0.7)
        again = await ask(app, "/healthz/live")
    assert early[0] == 200
    assert late[0] == 503
    assert json.loads(late[1])["loop_tick_age_s"] >= 1.2
    assert json.loads(late[1])["status"] == "event_loop_blocked"
    assert ready[0] == 200
    assert again[0] == 200


async def test_readiness_follows_the_model(serve: Any, fake_backend: Any, until: Any) -> None:
    """Warming up is told apart from ready, with the phase; live from the first moment (row A12)."""
    fake_backend.gate.clear()
    async with serve(fake_backend, ready=False) as (_client, app):
        await until(fake_backend.entered.is_set)
        warming = await ask(app, "/healthz/ready")
        live = await ask(app, "/healthz/live")
        fake_backend.gate.set()
        await until(lambda: app.state.worker.lifecycle.state.ready)
        ready = await ask(app, "/healthz/ready")
    pid = os.getpid()
    assert warming == (503, {"status": "warming", "phase": "warming_up", "pid": pid})
    assert live[0] == 200
    assert ready == (200, {"status": "ready", "phase": "ready", "pid": pid})


async def test_missing_model_is_told_with_reason_and_mend(serve: Any, until: Any) -> None:
    """The operator reads which folder and which command."""

    def load(_settings: Any) -> Any:
        raise ArtifactsMissing("no model in /some/folder; run `inferdeck train`")

    async with serve(load=load, ready=False) as (_client, app):
        await until(lambda: app.state.worker.lifecycle.state.failed)
        status, document = await ask(app, "/healthz/ready")
    assert status == 503
    assert document["status"] == "not_ready"
    assert document["reason"] == "no model in /some/folder; run `inferdeck train`"
    assert document["mend"] == "inferdeck train"


async def test_metrics_tell_build_phase_and_loss(serve: Any) -> None:
    """The exposition parses, and the phases are a closed set with one that is on."""
    async with serve() as (_client, app):
        status, body = await asyncio.to_thread(get, app.state.worker.admin.port, "/metrics")
        settings = app.state.worker.settings
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    assert status == 200
    (build,) = families["model_build_info"].samples
    assert set(build.labels) == {"version", "commit", "model", "config"}
    assert (build.labels["model"], build.labels["config"], build.value) == ("fake-1", settings.fingerprint, 1.0)
    phases = {sample.labels["phase"]: sample.value for sample in families["runtime_phase"].samples}
    assert phases == {phase: float(phase == "ready") for phase in PHASES}
    assert families["telemetry_requests_unrecorded"].type == "counter"


async def test_other_paths_are_404(serve: Any) -> None:
    """Nothing else is on the admin port."""
    async with serve() as (_client, app):
        assert (await asyncio.to_thread(get, app.state.worker.admin.port, "/v1/sentiment"))[0] == 404


async def test_taken_admin_port_does_not_stop_the_service(
    serve: Any, good: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Under another server than our own the requests matter more; the log says what is missing."""
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        async with serve(admin_port=taken.getsockname()[1]) as (client, app):
            response = await client.post("/v1/sentiment", json=good)
            assert app.state.worker.admin is None
    assert response.status_code == 200
    assert "no admin port" in caplog.text


def test_shared_sockets_bind_one_port_and_others_do_not() -> None:
    """Workers share the port, and a second service on it is an error."""
    with bind("127.0.0.1", 0, shared=True) as first:
        port = first.getsockname()[1]
        with bind("127.0.0.1", port, shared=True) as second:
            assert second.getsockname()[1] == port
        first.listen()
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)


def test_address_that_is_not_here_is_an_error() -> None:
    """A socket that cannot be bound is closed again."""
    with pytest.raises(OSError, match="assign"):
        bind("192.0.2.1", 0)
