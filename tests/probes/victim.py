"""A small service that the test of the crash kills: run with a ring folder and the descriptor of a bound socket."""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from fastapi import FastAPI

from probes import attach, current, stage

app = FastAPI()
attach(app, service="victim", directory=sys.argv[1])


@app.get("/jobs/{number}")
async def work(number: int) -> dict[str, int]:
    """Answer at once, through two stages."""
    with stage("tokenizer", tokens=number):
        await asyncio.sleep(0)
    with stage("model.forward"):
        await asyncio.sleep(0)
    record = current()
    if record is not None:
        record.set(tokens=number)
    return {"number": number}


@app.get("/hang")
async def hang() -> None:
    """Enter a stage and never leave it."""
    with stage("model.forward"):
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvicorn.run(app, fd=int(sys.argv[2]), log_level="error", lifespan="on")
