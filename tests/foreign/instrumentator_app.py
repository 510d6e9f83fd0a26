"""A FastAPI app without our recorder, measured by prometheus-fastapi-instrumentator; a call breaks it."""

import asyncio

from fastapi import FastAPI, HTTPException
from prometheus_fastapi_instrumentator import Instrumentator

app = FastAPI()
Instrumentator(should_instrument_requests_inprogress=True).instrument(app).expose(app)
wrong = False
asked = 0


@app.post("/break")
async def break_it() -> None:
    """Go wrong from now on."""
    global wrong  # noqa: PLW0603  # an app in one file
    wrong = True


@app.get("/digits/{text}")
async def digits(text: str) -> dict[str, int]:
    """Count digits; when broken, slowly, and for every fourth request not at all."""
    global asked  # noqa: PLW0603  # as above
    asked += 1
    number = asked
    if wrong:
        await asyncio.sleep(0.3)
        if number % 4 == 0:
            raise HTTPException(503)
    return {"digits": sum(character.isdigit() for character in text)}
