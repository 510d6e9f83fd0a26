"""An app of somebody else, attached in three lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse

from probes import attach, stage
from probes.reader import RingFile, list_rings

Decode = Callable[[RingFile], list[dict[str, Any]]]


def foreign_app(ring_dir: Path) -> FastAPI:
    """Return a model service that knows nothing of this project but the lines marked."""
    app = FastAPI()
    attach(app, service="digits", directory=ring_dir)  # the first line; the import is the second

    @app.get("/digits/{name}")
    def digits(name: str) -> dict[str, int]:  # a synchronous endpoint: FastAPI runs it on a thread
        with stage("digits.forward", characters=len(name)):  # the third
            if name == "none":
                raise HTTPException(404)
            return {"digits": sum(character.isdigit() for character in name)}

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(iter([b"x" * 1000] * 100))

    return app


def test_three_lines_record_an_app_of_somebody_else(ring_dir: Path, decode: Decode) -> None:
    """Routes are templates, refused requests leave rows, stages work on FastAPI's threads, streams pass."""

    async def main() -> list[int]:
        transport = httpx.ASGITransport(foreign_app(ring_dir))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            paths = ("/digits/a1b2", "/digits/none", "/nowhere", "/stream")
            return [(await http.get(path)).status_code for path in paths]

    statuses = asyncio.run(main())
    [path] = list_rings(ring_dir)
    with RingFile(path) as ring:
        rows = decode(ring)
        service = ring.header.service

    assert ("digits", [200, 404, 404, 200]) == (service, statuses)
    assert ["/digits/{name}", "/digits/{name}", "(unmatched)", "/stream"] == [row["route"] for row in rows]
    assert [0, 1, 1, 0] == [row["outcome"] for row in rows]
    assert [4, 4] == [row["digits.forward/characters"] for row in rows[:2]]
    assert 100_000 == rows[3]["network.send/bytes"]
