"""Two versions in the running service: who answers, what a failing one costs, what is compared, what is taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from exporters.rows import load_rows
from service.backend import Backend, NotANumber
from service.canary import assemble
from service.canary.state import CanaryStore

pytestmark = pytest.mark.anyio
Until = Callable[[Callable[[], bool]], Awaitable[None]]
FLIPPED: Sequence[float] = (3.0, 1.0, 0.0)


@pytest.fixture
def two(
    serve: Any, make_backend: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, until: Until
) -> Callable[..., Any]:
    """Return what runs the service with a canary."""

    @asynccontextmanager
    async def run(canary: Backend, share: float = 1.0, **told: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
        canary.version = "fake-2"  # type: ignore[misc]  # a fake's name
        monkeypatch.setattr(assemble, "_load", lambda _settings, _model, _stable: canary)
        settings = {"canary_model": "v2", "canary_share": share, "canary_compare_share": 0.0} | told
        async with serve(make_backend(), **settings) as (client, app):
            await until(lambda: app.state.worker.canary().state in {"serving", "idle"})
            yield client, app

    return run


def column(tmp_path: Any, name: str) -> list[Any]:
    """Return a column of the rows in the ring."""
    return list(load_rows(tmp_path / "rings").columns[name])


async def test_the_header_picks_a_version_and_an_unknown_one_is_404(
    two: Any, make_backend: Any, good: dict[str, str], judge: Any
) -> None:
    """By role and by name; the refusal names those that there are."""
    async with two(make_backend(FLIPPED), share=0.0) as (client, _):
        told = {}
        for name in ("stable", "fake-1", "canary", "fake-2", "fake-3"):
            response = await client.post("/v1/sentiment", json=good, headers={"x-model-version": name})
            document = judge.answer(response)
            told[name] = (response.status_code, response.headers.get("x-model-version"), document.get("sentiment"))
        assert (200, "fake-1", "positive") == told["stable"] == told["fake-1"]
        assert (200, "fake-2", "negative") == told["canary"] == told["fake-2"]
        assert told["fake-3"][0] == 404
        assert "fake-1" in document["error"]["message"]
        assert "fake-2" in document["error"]["message"]
        assert "fake-3" not in document["error"]["message"]
        assert "x-model-version" not in (await client.post("/v1/sentiment", json=good)).headers


@pytest.mark.parametrize("name", ["", "x" * 5000, "\xff\x80", "stable, canary", "../v2", "fake-1\tfake-2"])
async def test_a_header_that_names_nothing_is_404_and_not_repeated(
    two: Any, make_backend: Any, good: dict[str, str], judge: Any, name: str
) -> None:
    """Empty, endless, no ASCII, two at once, a path: none of them is a version."""
    async with two(make_backend(), share=0.0) as (client, _):
        headers = [(b"x-model-version", name.encode("latin-1"))]
        response = await client.post("/v1/sentiment", json=good, headers=headers)
        message = judge.answer(response)["error"]["message"]
    assert response.status_code == 404
    assert not name or name not in message.replace("stable (fake-1), canary (fake-2)", "")


async def test_a_session_stays_with_its_version_and_a_larger_share_keeps_it(
    two: Any, make_backend: Any, good: dict[str, str], tmp_path: Any, until: Until
) -> None:
    """Of forty sessions some go to either version, the same at every request."""
    async with two(make_backend(), share=0.4) as (client, app):

        async def ask(number: int) -> str:
            headers = {"x-session-id": f"session-{number:012}"}
            return str((await client.post("/v1/sentiment", json=good, headers=headers)).headers["x-model-version"])

        first = [await ask(i) for i in range(40)]
        assert {"fake-1", "fake-2"} == set(first)
        assert first == [await ask(i) for i in range(40)]
        CanaryStore(tmp_path / "state" / "service" / "canary").set(share=0.8)
        await until(lambda: app.state.worker.canary().share == 0.8)
        later = [await ask(i) for i in range(40)]
    assert first.count("fake-2") < later.count("fake-2") < 40
    assert not any(was == "fake-2" != now for was, now in zip(first, later, strict=True))


@pytest.mark.parametrize("failure", [(NotANumber("nan"), "nan"), (RuntimeError("broken"), "error")])
async def test_a_failing_canary_is_answered_for_by_the_stable_version(
    two: Any, make_backend: Any, good: dict[str, str], tmp_path: Any, failure: tuple[Exception, str]
) -> None:
    """Within the same request, undegraded for a share, degraded for who named it; the row says why."""
    error, why = failure
    async with two(make_backend(FLIPPED, error=error)) as (client, _):
        response = await client.post("/v1/sentiment", json=good)
        named = await client.post("/v1/sentiment", json=good, headers={"x-model-version": "canary"})
    assert ("fake-1", "positive") == (response.headers["x-model-version"], response.json()["sentiment"])
    assert "degraded" not in response.json()
    assert ("fake-1", "fallback") == (named.headers["x-model-version"], named.headers["x-degraded"])
    assert [why, why] == column(tmp_path, "request/version_failed")
    assert ["canary", "canary"] == column(tmp_path, "request/version_role")
    assert ["fake-1", "fake-1"] == column(tmp_path, "model_version")


async def test_a_hanging_canary_costs_half_of_the_deadline(
    two: Any, make_backend: Any, good: dict[str, str], tmp_path: Any
) -> None:
    """The stable version answers in what is left."""
    canary = make_backend(FLIPPED)
    async with two(canary, deadline_seconds=4) as (client, _):
        canary.gate.clear()
        response = await client.post("/v1/sentiment", json=good)
        canary.gate.set()
    assert "positive" == response.json()["sentiment"]
    assert "degraded" not in response.json()
    assert ["late"] == column(tmp_path, "request/version_failed")


async def test_answers_are_compared_and_the_difference_is_in_the_row(
    two: Any, make_backend: Any, good: dict[str, str], tmp_path: Any
) -> None:
    """The other label, and how far apart both are."""
    async with two(make_backend(FLIPPED), canary_compare_share=1.0) as (client, _):
        assert "negative" == (await client.post("/v1/sentiment", json=good)).json()["sentiment"]
    assert ["flipped"] == column(tmp_path, "request/canary_comparison")
    assert [1] == [int(one) for one in column(tmp_path, "request/canary_difference")]
    assert 0.5 < column(tmp_path, "request/canary_distance")[0] < 1.0


async def test_a_canary_that_answers_otherwise_is_taken_back_for_all_workers(
    two: Any, make_backend: Any, good: dict[str, str], tmp_path: Any, until: Until
) -> None:
    """Its share goes to 0 in the file, in the metric, and in what is answered."""
    async with two(make_backend(FLIPPED), canary_compare_share=1.0) as (client, app):
        for _ in range(60):
            await client.post("/v1/sentiment", json=good)
        await until(lambda: app.state.worker.canary().state == "rolled_back")
        after = await client.post("/v1/sentiment", json=good)
        assert "positive" == after.json()["sentiment"]
        assert app.state.worker.canary().rollbacks["flips"] == 1
        found = CanaryStore(tmp_path / "state" / "service" / "canary").read()
    assert found is not None
    assert (0.0, "rollback") == (found.share, found.by)


async def test_without_a_canary_rows_and_answers_are_as_they_were(
    serve: Any, good: dict[str, str], tmp_path: Any
) -> None:
    """No header, no column."""
    async with serve() as (client, _):
        response = await client.post("/v1/sentiment", json=good)
    assert "x-model-version" not in response.headers
    assert "request/version_role" not in load_rows(tmp_path / "rings").columns
