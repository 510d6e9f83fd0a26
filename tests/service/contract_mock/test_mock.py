from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from service.contract_mock.examples import operations
from service.contract_mock.server import create_mock

pytestmark = pytest.mark.anyio
URL = "/v1/sentiment"
GOOD = {"text": "good phone", "product_id": "AB12345678"}


@pytest.fixture
async def mock(contract: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of the mock."""
    transport = httpx.ASGITransport(create_mock(contract))
    async with httpx.AsyncClient(transport=transport, base_url="http://mock") as client:
        yield client


async def test_every_answer_of_the_contract_can_be_had(mock: Any, contract: dict[str, Any], judge: Any) -> None:
    """Each status of each operation is given on demand, and fits the contract."""
    seen = 0
    for operation in operations(contract):
        for status, answer in operation.answers.items():
            if answer.media_type != "application/json" or not answer.body:
                continue
            path = operation.path.replace("{", "").replace("}", "")
            headers = {"prefer": f"code={status}"}
            told = await mock.request(operation.method, path, json=GOOD, headers=headers)
            assert told.status_code == status
            judge.answer(told, operation.path, operation.method.lower())
            seen += 1
    assert seen >= 10


async def test_body_is_judged_as_the_service_judges_it(mock: Any, serve: Any) -> None:
    """The mock and the service give the same status for the same body."""
    bodies: list[bytes] = [
        b'{"text": "good", "product_id": "AB12345678"}',
        b'{"text": "good", "product_id": "ab12345678"}',
        b'{"text": "good"}',
        b'{"text": "", "product_id": "AB12345678"}',
        b'{"text": "a@b", "product_id": "AB12345678"}',
        b'{"text": "' + b"x" * 1025 + b'", "product_id": "AB12345678"}',
        b'{"text": "a@b", "product_id": "no"}',
        b"[]",
        b"{",
        b'{"text": "' + b"x" * 20_000 + b'", "product_id": "AB12345678"}',
    ]
    json = {"content-type": "application/json"}
    async with serve() as (service, _app):
        for body in bodies:
            expected = await service.post(URL, content=body, headers=json)
            told = await mock.post(URL, content=body, headers=json)
            assert expected.status_code == told.status_code, body[:60]


async def test_what_the_contract_does_not_know_is_404_and_405(mock: Any) -> None:
    """As the service answers, with the methods that the path takes."""
    assert (await mock.get("/v2/other")).status_code == 404
    wrong = await mock.get(URL)
    assert (405, "POST") == (wrong.status_code, wrong.headers["allow"])


async def test_named_example_is_given(mock: Any) -> None:
    """A client's author picks the answer to write against."""
    told = await mock.post(URL, json=GOOD, headers={"prefer": "code=200, example=late"})
    assert told.json()["degraded"] is True
    assert (await mock.post(URL, json=GOOD, headers={"prefer": "code=299"})).status_code == 400
