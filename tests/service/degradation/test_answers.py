"""The CPU's model answers in the wanted one's place: the running service, held against its contract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.backend import Calls

pytestmark = pytest.mark.anyio
URL = "/v1/sentiment"
HELD: dict[str, Any] = {"deadline_seconds": 20, "queue_places": 1, "vip_places": 1, "inference_threads": 1}
VIP = {"vip_product_prefixes": ("VI",)}


@pytest.fixture
def triton(make_backend: Any) -> Any:
    """Return a backend with a breaker that a test sets; it computes in process all the same."""

    class Behind(make_backend):  # type: ignore[misc]  # a class that a fixture returns
        breaker = "open"

        def snapshot(self) -> Calls:
            return Calls(self.breaker, 1, {})

    return Behind()


async def fetched(client: Any, judge: Any, accepted: Any) -> Any:
    """Return the answer to the promise, asked for until it is there."""
    place = accepted.headers["location"]
    for _ in range(2000):
        answer = await client.get(place)
        judge.answer(answer, "/v1/results/{id}", "get")
        if answer.status_code != 202:
            return answer
        await asyncio.sleep(0.01)
    pytest.fail("the result never came")


async def test_full_queue_is_202_with_a_place_to_fetch_the_judgement(
    serve: Any, judge: Any, until: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """It is pending while the CPU's model is held, then there, with why; then the queue has room as before."""
    async with serve(fake_backend, **HELD) as (client, app):
        fake_backend.gate.clear()
        held = [asyncio.create_task(client.post(URL, json=good)) for _ in range(3)]
        await until(lambda: app.state.worker.executor.pending == 2)
        await asyncio.sleep(0.05)
        promised = await client.post(URL, json=good)
        document = judge.answer(promised)
        pending = await client.get(promised.headers["location"])
        fake_backend.gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*held)] == [200, 200, 200]
        answer = await fetched(client, judge, promised)
        again = await client.get(promised.headers["location"])
        after = await client.post(URL, json=good)
        metrics = app.state.worker.snapshot().degraded
    assert (promised.status_code, pending.status_code) == (202, 202)
    assert int(promised.headers["retry-after"]) == document["retry_after_s"] >= 1
    assert document["result"] == promised.headers["location"]
    assert answer.headers["x-degraded"] == "queue_full"
    assert (answer.json()["sentiment"], answer.json()["degraded"]) == ("positive", True)
    assert again.json() == answer.json()
    assert (after.status_code, "x-degraded" in after.headers) == (200, False)
    assert (metrics.results["accepted"], metrics.results["stored"], metrics.results["fetched"]) == (1, 1, 2)
    assert metrics.state.entered["queue_full"] == 1


async def test_no_room_for_a_promise_is_429(serve: Any, judge: Any, triton: Any, good: dict[str, str]) -> None:
    """Neither more texts than places, nor more results."""
    told = {"degraded_answers": {"triton_down": "later"}, "results_places": 2}
    async with serve(triton, **told) as (client, _app):
        answers = [await client.post(URL, json=good) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert judge.answer(answers[2])["error"]["reason"] == "queue_full"
    assert int(answers[2].headers["retry-after"]) >= 1


async def test_open_breaker_by_setting_is_202_and_recovers_by_itself(
    serve: Any, judge: Any, triton: Any, good: dict[str, str]
) -> None:
    """A VIP is judged now; once the breaker closes all is as before."""
    async with serve(triton, degraded_answers={"triton_down": "later"}, **VIP) as (client, app):
        promised = await client.post(URL, json=good)
        vip = await client.post(URL, json=good | {"product_id": "VI00000001"})
        answer = await fetched(client, judge, promised)
        triton.breaker = "closed"
        after = await client.post(URL, json=good)
        state = app.state.worker.snapshot().degraded.state
    assert (promised.status_code, vip.status_code, after.status_code) == (202, 200, 200)
    assert (vip.headers["x-degraded"], judge.answer(vip)["sentiment"]) == ("triton_down", "positive")
    assert answer.headers["x-degraded"] == "triton_down"
    assert "x-degraded" not in after.headers
    assert (state.entered["triton_down"], state.left["triton_down"]) == (1, 1)


async def test_synchronous_answers_for_all_by_setting(
    serve: Any, judge: Any, triton: Any, good: dict[str, str]
) -> None:
    """Who prefers 200 for everybody gets it."""
    async with serve(triton, degraded_answers={"triton_down": "now", "queue_full": "now"}) as (client, _app):
        answer = await client.post(URL, json=good)
    assert (answer.status_code, answer.headers["x-degraded"]) == (200, "triton_down")
    assert judge.answer(answer)["degraded"] is True


async def test_cpu_model_that_fails_is_said_in_the_result(
    serve: Any, judge: Any, triton: Any, good: dict[str, str]
) -> None:
    """The promise is kept: nobody judged, and that is the answer."""
    triton.error = RuntimeError("broken")
    async with serve(triton, degraded_answers={"triton_down": "later"}) as (client, _app):
        answer = await fetched(client, judge, await client.post(URL, json=good))
    assert (answer.headers["x-degraded"], answer.json()["confidence"]) == ("model_error", 0.0)


async def test_unknown_and_expired_results_are_404_and_410(
    serve: Any, judge: Any, triton: Any, good: dict[str, str]
) -> None:
    """Which of the two is told by the id."""
    async with serve(triton, degraded_answers={"triton_down": "later"}, results_seconds=1) as (client, _app):
        promised = await client.post(URL, json=good)
        unknown = await client.get("/v1/results/" + "0" * 66)
        odd = await client.get("/v1/results/..%2Fkey")
        for _ in range(500):
            expired = await client.get(promised.headers["location"])
            if expired.status_code == 410:
                break
            await asyncio.sleep(0.02)
        posted = await client.post(promised.headers["location"])
    path = "/v1/results/{id}"
    assert (unknown.status_code, odd.status_code, expired.status_code) == (404, 404, 410)
    assert judge.answer(unknown, path, "get")["error"]["reason"] == "not_found"
    assert judge.answer(expired, path, "get")["error"]["reason"] == "expired"
    assert judge.answer(posted, path, "get")["error"]["reason"] == "method"


async def test_workers_share_their_results(
    serve: Any, judge: Any, triton: Any, make_backend: Any, good: dict[str, str]
) -> None:
    """A second service of the same folders gives what the first one promised."""
    async with (
        serve(triton, degraded_answers={"triton_down": "later"}) as (one, _first),
        serve(make_backend()) as (two, _second),
    ):
        promised = await one.post(URL, json=good)
        answer = await fetched(two, judge, promised)
    assert answer.status_code == 200
