from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from exporters.serving import is_loopback, only_known_hosts


async def status(bound: str, headers: Mapping[str, str]) -> int:
    """Ask an app that is bound to an address."""

    def hello(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    app = Starlette(routes=[Route("/", hello)], middleware=[only_known_hosts(bound)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return (await client.get("/", headers=headers)).status_code


@pytest.mark.parametrize(
    ("bound", "name", "expected"),
    [
        ("127.0.0.1", "127.0.0.1:9464", 200),
        ("127.0.0.1", "LocalHost", 200),
        ("127.0.0.2", "127.0.0.2:9464", 200),
        ("::1", "[::1]:9464", 200),
        ("127.0.0.1", "evil.example", 400),
        ("127.0.0.1", "127.0.0.1.evil.example", 400),
        ("::1", "evil.example:9464", 400),
        ("127.0.0.1", "", 400),
        ("0.0.0.0", "anything.example", 200),
    ],
)
def test_a_loopback_port_is_reached_by_its_own_names_alone(bound: str, name: str, expected: int) -> None:
    """Each loopback address by itself and as localhost; other addresses have a token to show instead."""
    assert asyncio.run(status(bound, {"host": name})) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("localhost.evil", False),
    ],
)
def test_loopback_is_told_from_the_address(host: str, expected: bool) -> None:
    """A name that only looks like it is not taken for it."""
    assert is_loopback(host) is expected
