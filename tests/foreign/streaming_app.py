"""A Starlette app that reads and writes its bodies in pieces; the three lines that attach the recorder are numbered."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from probes import attach, stage  # 1

PAUSE_SECONDS = 0.05


class Upper:
    """Answers each piece of the body in capitals, while the next is still to come."""

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Work on raw messages: StreamingResponse would take pieces of the body for signs that the client left."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            with stage("upper.piece"):  # 3
                piece = message.get("body", b"").upper()
            await send({"type": "http.response.body", "body": piece, "more_body": more})


async def tokens(request: Request) -> StreamingResponse:
    """Answer token by token, as a language model does: the first one takes as long as each of the others."""

    async def made() -> AsyncIterator[bytes]:
        for number in range(int(request.path_params["count"])):
            await asyncio.sleep(PAUSE_SECONDS)
            yield b"token-%03d " % number

    return StreamingResponse(made())


app = Starlette(routes=[Route("/upper", Upper()), Route("/tokens/{count:int}", tokens)])
attach(app, service="streams")  # 2
