"""The running app, in process: every status in the contract's shape, hard input, deadlines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import yaml

from service.artifacts import ArtifactsMissing

pytestmark = pytest.mark.anyio
URL = "/v1/sentiment"
JSON = {"content-type": "application/json"}


async def test_judges_a_review(serve: Any, judge: Any, good: dict[str, str]) -> None:
    """A good request gets label, confidence and latency, and nothing says degraded."""
    async with serve() as (client, _app):
        response = await client.post(URL, json=good)
    answer = judge.answer(response)
    assert response.status_code == 200
    assert answer["sentiment"] == "positive"
    assert answer["confidence"] == pytest.approx(0.843795, abs=1e-6)  # softmax(0, 1, 3)
    assert answer["latency_ms"] >= 0
    assert "degraded" not in answer
    assert "x-degraded" not in response.headers


async def test_model_reads_the_cleaned_text(serve: Any, fake_backend: Any) -> None:
    """Cleaning comes after the contract's judgement and before the model."""
    async with serve(fake_backend) as (client, _app):
        await client.post(URL, json={"text": " ＡＢ　 好  ", "product_id": "AB12345678"})
    assert fake_backend.texts[-1] == "AB 好"


async def test_text_of_white_space_alone_is_in_the_contract(serve: Any, judge: Any) -> None:
    """White space is allowed, so the model answers with what it knows without a text."""
    async with serve() as (client, _app):
        response = await client.post(URL, json={"text": "   ", "product_id": "AB12345678"})
    assert judge.answer(response)["sentiment"] == "positive"


NOT_THE_SCHEMA = {
    "empty body": b"",
    "not json": b"hello",
    "half a document": b'{"text": "good"',
    "two documents": b'{"text":"good","product_id":"AB12345678"}{}',
    "array": b"[]",
    "string": b'"good"',
    "null": b"null",
    "number": b"12",
    "NaN": b"NaN",
    "NaN as text": b'{"text": NaN, "product_id": "AB12345678"}',
    "Infinity as text": b'{"text": -Infinity, "product_id": "AB12345678"}',
    "NaN beside": b'{"text": "good", "product_id": "AB12345678", "x": NaN}',
    "missing text": b'{"product_id": "AB12345678"}',
    "missing product_id": b'{"text": "good"}',
    "empty text": b'{"text": "", "product_id": "AB12345678"}',
    "text is a number": b'{"text": 5, "product_id": "AB12345678"}',
    "text is null": b'{"text": null, "product_id": "AB12345678"}',
    "text is a list": b'{"text": ["good"], "product_id": "AB12345678"}',
    "text is an object": b'{"text": {"a": "good"}, "product_id": "AB12345678"}',
    "product_id is a number": b'{"text": "good", "product_id": 12345678}',
    "product_id in lower case": b'{"text": "good", "product_id": "ab12345678"}',
    "product_id too short": b'{"text": "good", "product_id": "AB1234567"}',
    "product_id with a line end": b'{"text": "good", "product_id": "AB12345678\\n"}',
    "product_id in Arabic digits": '{"text": "good", "product_id": "AB١٢٣٤٥٦٧٨"}'.encode(),
    "unknown field": b'{"text": "good", "product_id": "AB12345678", "lang": "en"}',
    "key twice": b'{"text": "good", "text": "bad", "product_id": "AB12345678"}',
    "key twice by an escape": b'{"text": "good", "te\\u0078t": "bad", "product_id": "AB12345678"}',
    "invalid UTF-8": b'{"text": "\xff\xfe", "product_id": "AB12345678"}',
    "UTF-8 of a surrogate": b'{"text": "\xed\xa0\x80", "product_id": "AB12345678"}',
    "lone surrogate": b'{"text": "\\ud800", "product_id": "AB12345678"}',
    "low surrogate first": b'{"text": "\\udc00\\ud800", "product_id": "AB12345678"}',
    "raw control character": b'{"text": "a\x00b", "product_id": "AB12345678"}',
    "UTF-16": '{"text": "good", "product_id": "AB12345678"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + b'{"text": "good", "product_id": "AB12345678"}',
    "nested arrays": b"[" * 8000,
    "nested objects as text": b'{"text": ' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b', "product_id": "AB12345678"}',
    "huge number": b'{"text": 1' + b"0" * 5000 + b', "product_id": "AB12345678"}',
    "trailing comma": b'{"text": "good", "product_id": "AB12345678",}',
}


@pytest.mark.parametrize("body", NOT_THE_SCHEMA.values(), ids=NOT_THE_SCHEMA.keys())
async def test_what_is_not_the_schema_is_400(client: Any, judge: Any, body: bytes) -> None:
    """A body that is not JSON or not the schema is 400 with reason schema."""
    response = await client.post(URL, content=body, headers=JSON)
    assert response.status_code == 400
    assert judge.answer(response)["error"]["reason"] == "schema"


async def test_escaped_quotation_mark_is_no_key_twice(client: Any, judge: Any) -> None:
    """The count of quotation marks only asks for a closer look; the mark itself is an illegal character."""
    response = await client.post(URL, content=b'{"text": "a\\"b", "product_id": "AB12345678"}', headers=JSON)
    assert response.status_code == 422
    assert judge.answer(response)["error"]["message"].endswith("U+0022")


ILLEGAL = {
    "apostrophe": "it's",
    "emoji": "good 😀",
    "null": "a\0b",
    "escape": "\x1b[31mred",
    "right-to-left override": "a\u202eb",
    "zero-width space": "a\u200bb",
    "markup": "<b>good</b>",
    "Cyrillic": "хорошо",
    "replacement character": "\ufffd",
    "full-width quotation marks": "“好”",
}


@pytest.mark.parametrize("text", ILLEGAL.values(), ids=ILLEGAL.keys())
async def test_illegal_characters_are_422(client: Any, judge: Any, text: str) -> None:
    """A document that fits the schema with a character outside the contract is 422 illegal_characters."""
    response = await client.post(URL, json={"text": text, "product_id": "AB12345678"})
    assert response.status_code == 422
    assert judge.answer(response)["error"]["reason"] == "illegal_characters"


@pytest.mark.parametrize(("length", "status"), [(1, 200), (1023, 200), (1024, 200), (1025, 422), (5000, 422)])
async def test_text_ends_at_1024_characters(client: Any, judge: Any, length: int, status: int) -> None:
    """1,024 code points are in, one more is 422 too_long, in Chinese as well."""
    response = await client.post(URL, json={"text": "好" * length, "product_id": "AB12345678"})
    answer = judge.answer(response)
    assert response.status_code == status
    assert status == 200 or answer["error"]["reason"] == "too_long"


@pytest.mark.parametrize(
    ("text", "product_id", "answer"),
    [
        ("x" * 2000, "bad", (400, "schema")),
        ("it's", "bad", (400, "schema")),
        ("'" * 2000, "AB12345678", (422, "too_long")),
    ],
)
async def test_schema_comes_before_length_and_length_before_characters(
    client: Any, judge: Any, text: str, product_id: str, answer: tuple[int, str]
) -> None:
    """Of several faults the first in the contract's order is the answer."""
    response = await client.post(URL, json={"text": text, "product_id": product_id})
    assert (response.status_code, judge.answer(response)["error"]["reason"]) == answer


@pytest.mark.parametrize(
    "body",
    [
        {"text": "SECRETWORD's", "product_id": "AB12345678"},
        {"text": "SECRETWORD", "product_id": "SECRETWORD"},
        {"text": "SECRETWORD" * 200, "product_id": "AB12345678"},
        {"text": "good", "product_id": "AB12345678", "SECRETWORD": 1},
        {"text": ["SECRETWORD"], "product_id": "AB12345678"},
    ],
)
async def test_errors_never_repeat_what_was_sent(client: Any, body: dict[str, Any]) -> None:
    """Neither values nor unknown names come back."""
    response = await client.post(URL, json=body)
    assert response.status_code in {400, 422}
    assert "SECRETWORD" not in response.text


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=gbk"},
        {"content-type": "application/jsonp"},
        {"content-type": ""},
        {"content-type": "\xff\xfe".encode("latin-1")},
    ],
)
async def test_other_content_types_are_415(client: Any, judge: Any, good: dict[str, str], said: dict[str, Any]) -> None:
    """Only JSON in UTF-8 is read."""
    response = await client.post(URL, content=json.dumps(good).encode(), headers=said)
    assert response.status_code == 415
    assert judge.answer(response)["error"] == {
        "reason": "other",
        "field": "content-type",
        "message": "the content type must be application/json",
    }


@pytest.mark.parametrize(
    "said", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
async def test_json_in_utf8_is_taken_however_it_is_spelt(client: Any, good: dict[str, str], said: str) -> None:
    """Case, white space and quotes of the content type do not matter."""
    response = await client.post(URL, content=json.dumps(good).encode(), headers={"content-type": said})
    assert response.status_code == 200


async def test_body_over_its_limit_is_413(client: Any, judge: Any) -> None:
    """A declared length over the limit is refused."""
    response = await client.post(URL, content=b"x" * 16385, headers=JSON)
    assert response.status_code == 413
    assert judge.answer(response)["error"]["reason"] == "body_too_large"


async def test_body_that_is_streamed_over_its_limit_is_413(client: Any, judge: Any) -> None:
    """Bytes are counted as they come, without a Content-Length."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 1000

    response = await client.post(URL, content=chunks(), headers=JSON)
    assert response.status_code == 413
    assert judge.answer(response)["error"]["reason"] == "body_too_large"


async def test_body_at_its_limit_is_read(client: Any, good: dict[str, str]) -> None:
    """White space of JSON up to the last allowed byte does not matter."""
    body = json.dumps(good).encode()
    response = await client.post(URL, content=body + b" " * (16384 - len(body)), headers=JSON)
    assert response.status_code == 200


async def test_body_that_never_ends_is_408(serve: Any, judge: Any) -> None:
    """A body that does not arrive in time is refused, and the connection closed."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async with serve(receive_timeout_seconds=0.05) as (client, _app):
        response = await client.post(URL, content=chunks(), headers=JSON)
    assert response.status_code == 408
    assert judge.answer(response)["error"]["field"] == "body"
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
async def test_other_methods_are_405(client: Any, judge: Any, method: str) -> None:
    """The path names the method that it takes."""
    response = await client.request(method, URL)
    assert response.status_code == 405
    assert judge.answer(response)["error"]["reason"] == "method"
    assert response.headers["allow"] == "POST"


async def test_head_is_405(client: Any) -> None:
    """HEAD is another method."""
    assert (await client.head(URL)).status_code == 405


@pytest.mark.parametrize(
    "path", ["/", "/v1/sentiment/", "/v1", "/docs", "/openapi.json", "/redoc", "/%00", "/..%2f", "//"]
)
async def test_other_paths_are_404(client: Any, judge: Any, path: str) -> None:
    """Nothing else is there, the framework's own pages included, and nothing redirects."""
    response = await client.post(f"http://t{path}")
    assert response.status_code == 404
    assert judge.answer(response)["error"]["reason"] == "not_found"


async def test_serves_the_contract_itself(client: Any, contract: dict[str, Any]) -> None:
    """What is served is the source, not what a framework derives from code."""
    response = await client.get("/openapi.yaml")
    assert response.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(response.content) == contract


ABSURD_HEADERS: dict[str, list[tuple[bytes, bytes]]] = {
    "session id of 10 kB": [(b"x-session-id", b"a" * 10_000)],
    "session id with quotes": [(b"x-session-id", b"\"';--<script>")],
    "session id of bytes": [(b"x-session-id", bytes(range(128, 256)))],
    "several session ids": [(b"x-session-id", b"a" * 20), (b"x-session-id", b"b" * 20)],
    "empty session id": [(b"x-session-id", b"")],
    "traceparent of nonsense": [(b"traceparent", b"00-zz-zz-zz")],
    "two traceparents": [(b"traceparent", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01")] * 2,
    "500 headers": [(f"x-{i}".encode(), b"v") for i in range(500)],
    "agent of nested quantifiers": [(b"user-agent", b"Mozilla/5.0 (" * 500)],
    "content length of nonsense": [(b"content-length", b"-5"), (b"content-length", b"abc")],
    "content length beyond any number": [(b"content-length", b"9" * 400)],
}


@pytest.mark.parametrize("headers", ABSURD_HEADERS.values(), ids=ABSURD_HEADERS.keys())
async def test_absurd_headers_do_not_matter(
    serve: Any, good: dict[str, str], headers: list[tuple[bytes, bytes]]
) -> None:
    """A header that is no part of the contract is never a reason to refuse."""
    async with serve() as (_client, app):
        status, body = await call(app, json.dumps(good).encode(), [*headers, (b"content-type", b"application/json")])
    assert status == 200
    assert json.loads(body)["sentiment"] == "positive"


async def call(app: Any, body: bytes, headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """Call the app without a client, which would refuse such headers itself."""
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": URL,
        "raw_path": URL.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:])


async def test_client_that_leaves_in_its_body_gets_nothing(serve: Any) -> None:
    """A disconnect before the end of the body ends the request without an answer or an error."""
    sent: list[Any] = []
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    async with serve() as (_client, app):
        scope = {"type": "http", "method": "POST", "path": URL, "headers": [(b"content-type", b"application/json")]}
        await app(scope | {"query_string": b"", "root_path": "", "asgi": {"version": "3.0"}}, receive, send)
    assert sent == []


async def test_late_model_gives_a_degraded_answer(
    serve: Any, judge: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """Past the deadline the answer is 200, neutral, without confidence, and says why."""
    async with serve(fake_backend, deadline_seconds=0.05) as (client, _app):
        fake_backend.gate.clear()
        response = await client.post(URL, json=good)
        fake_backend.gate.set()
    answer = judge.answer(response)
    assert (response.status_code, response.headers["x-degraded"]) == (200, "deadline")
    assert (answer["sentiment"], answer["confidence"], answer["degraded"]) == ("neutral", 0.0, True)


async def test_hung_model_does_not_pile_up_work(
    serve: Any, until: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """While the model hangs, only its thread and what was ready ahead of it are held; the rest leaves no trace."""
    told = {"deadline_seconds": 0.02, "queue_places": 3, "inference_threads": 1}
    async with serve(fake_backend, **told) as (client, app):
        fake_backend.gate.clear()
        reasons = [(await client.post(URL, json=good)).headers["x-degraded"] for _ in range(6)]
        assert app.state.worker.executor.pending == 2
        fake_backend.gate.set()
        await until(lambda: app.state.worker.executor.pending == 0)
        healed = await client.post(URL, json=good)
    assert reasons == ["deadline"] * 6
    assert "x-degraded" not in healed.headers
    # Warm-up, the one that hung, and the last: what was abandoned in the queue was never run.
    assert fake_backend.forwards == 3


async def test_full_queue_is_429_with_a_time_to_come_back(
    serve: Any, judge: Any, until: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """Where the settings say so: who finds no place is told at once when to ask again, a VIP gets a degraded answer."""
    told: dict[str, Any] = {"deadline_seconds": 20, "queue_places": 2, "vip_places": 1, "inference_threads": 1}
    told |= {"degraded_answers": {"queue_full": "off"}, "fallback_places": 1}
    told |= {"vip_product_prefixes": ("VI",)}
    vip = good | {"product_id": "VI00000001"}
    async with serve(fake_backend, **told) as (client, app):
        fake_backend.gate.clear()
        # The thread, one ahead of it and two places; for VIPs their own thread and one place.
        held = [asyncio.create_task(client.post(URL, json=good)) for _ in range(4)]
        await until(lambda: app.state.worker.executor.pending == 2)
        held += [asyncio.create_task(client.post(URL, json=vip)) for _ in range(2)]
        await until(lambda: app.state.worker.vip_executor.pending == 1)
        await asyncio.sleep(0.05)
        refused = await client.post(URL, json=good)
        late = asyncio.create_task(client.post(URL, json=vip))
        await until(lambda: fake_backend.forwards == 4)  # the warm-up, both threads' and that of the CPU's model
        fake_backend.gate.set()
        degraded = await late
        answered = [response.status_code for response in await asyncio.gather(*held)]
    assert (refused.status_code, judge.answer(refused)["error"]["reason"]) == (429, "queue_full")
    assert int(refused.headers["retry-after"]) >= 1
    assert (degraded.status_code, degraded.headers["x-degraded"]) == (200, "queue_full")
    assert (judge.answer(degraded)["sentiment"], judge.answer(degraded)["degraded"]) == ("positive", True)
    assert answered == [200] * 6


async def test_more_than_the_share_of_the_knee_is_429(serve: Any, judge: Any, good: dict[str, str]) -> None:
    """The bucket holds a second's worth; VIPs pass whatever is in it."""
    told = {"knee_rps": 4, "knee_share": 0.5, "vip_product_ids": ("VI00000001",)}
    async with serve(**told) as (client, _app):
        answers = [await client.post(URL, json=good) for _ in range(3)]
        vip = await client.post(URL, json=good | {"product_id": "VI00000001"})
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert judge.answer(answers[2])["error"]["reason"] == "rate_limited"
    assert answers[2].headers["retry-after"] == "1"
    assert vip.status_code == 200


async def test_ten_thousand_at_once_are_answered_or_told_to_come_back(serve: Any, good: dict[str, str]) -> None:
    """A flood fills the places and no more; afterwards everything is as before."""
    body = json.dumps(good).encode()
    statuses: dict[int, int] = {}
    async with serve(queue_places=50, recorder=False, fallback_places=20, results_places=30) as (client, app):

        async def one() -> None:
            async def receive() -> dict[str, Any]:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    statuses[message["status"]] = statuses.get(message["status"], 0) + 1

            scope = {"type": "http", "method": "POST", "path": URL, "headers": [(b"content-type", b"application/json")]}
            await app(scope | {"query_string": b"", "root_path": "", "asgi": {"version": "3.0"}}, receive, send)

        await asyncio.gather(*(one() for _ in range(10_000)))
        after = await client.post(URL, json=good)
    assert set(statuses) == {200, 202, 429}
    assert 20 <= statuses[202] <= 30
    assert sum(statuses.values()) == 10_000
    assert statuses[200] >= 50
    assert (after.status_code, "x-degraded" in after.headers) == (200, False)


async def test_client_that_leaves_while_it_waits_is_not_worked_for(
    serve: Any, until: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """A disconnect after the whole body is seen, the request leaves its queue, and nobody is answered."""
    gone = asyncio.Event()
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": json.dumps(good).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": URL}
    scope |= {"headers": [(b"content-type", b"application/json")]}
    scope |= {"query_string": b"", "root_path": "", "asgi": {"version": "3.0"}}
    async with serve(fake_backend, deadline_seconds=20, inference_threads=1) as (client, app):
        fake_backend.gate.clear()
        held = [asyncio.create_task(client.post(URL, json=good)) for _ in range(2)]
        await until(lambda: app.state.worker.executor.pending == 2)
        leaving = asyncio.create_task(app(scope, receive, send))
        await asyncio.sleep(0.05)
        gone.set()
        await asyncio.wait_for(leaving, 10)
        fake_backend.gate.set()
        await asyncio.gather(*held)
    assert sent == []
    # Warm-up and the two that stayed.
    assert fake_backend.forwards == 3


async def test_failing_model_gives_a_degraded_answer(
    serve: Any, judge: Any, make_backend: Any, good: dict[str, str]
) -> None:
    """Whatever the backend raises, the caller gets an answer that says so, and no 500."""
    async with serve(make_backend(error=RuntimeError("boom"))) as (client, _app):
        response = await client.post(URL, json=good)
    answer = judge.answer(response)
    assert (response.headers["x-degraded"], answer["degraded"], answer["sentiment"]) == ("model_error", True, "neutral")


async def test_loop_runs_while_the_model_computes(
    serve: Any, until: Any, fake_backend: Any, good: dict[str, str]
) -> None:
    """Another request is answered while one is held in the model (row B9)."""
    async with serve(fake_backend, deadline_seconds=20) as (client, _app):
        fake_backend.gate.clear()
        fake_backend.entered.clear()
        held = asyncio.create_task(client.post(URL, json=good))
        await until(fake_backend.entered.is_set)
        assert (await client.get("/openapi.yaml")).status_code == 200
        assert not held.done()
        fake_backend.gate.set()
        assert (await held).status_code == 200


async def test_warming_up_is_503(serve: Any, judge: Any, fake_backend: Any, good: dict[str, str]) -> None:
    """Before the model is there a good request is told to come back, and a bad one is still told what is wrong."""
    fake_backend.gate.clear()
    async with serve(fake_backend, ready=False) as (client, _app):
        response = await client.post(URL, json=good)
        bad = await client.post(URL, json={})
        fake_backend.gate.set()
    assert response.status_code == 503
    assert "warming up" in judge.answer(response)["error"]["message"]
    assert response.headers["retry-after"] == "1"
    assert bad.status_code == 400


async def test_missing_model_is_503_with_the_mend(serve: Any, until: Any, judge: Any, good: dict[str, str]) -> None:
    """Without a model the service stays up, names the mend, and keeps its folders to itself."""

    def load(_settings: Any) -> Any:
        raise ArtifactsMissing("no model in /secret/place; run `inferdeck train`")

    async with serve(load=load, ready=False) as (client, app):
        await until(lambda: app.state.worker.lifecycle.state.failed)
        response = await client.post(URL, json=good)
    message = judge.answer(response)["error"]["message"]
    assert message == "there is no model (model_missing); mend: inferdeck train"


async def test_fault_of_a_middleware_is_500_in_the_contracts_shape(
    serve: Any, judge: Any, good: dict[str, str], tmp_path: Any
) -> None:
    """What nobody foresaw is 500, in the same shape as every other error."""
    source = """
def wrap(app):
    async def broken(scope, receive, send):
        if scope["type"] == "http":
            raise ValueError("secret")
        await app(scope, receive, send)
    return broken
"""
    (tmp_path / "broken.py").write_text(source)
    async with serve(middleware=(f"{tmp_path}/broken.py:wrap",)) as (_client, app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
            response = await client.post(URL, json=good)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert judge.answer(response)["error"]["reason"] == "other"
