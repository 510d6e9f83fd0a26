"""A service that hangs in the stage that the path names; run with uvicorn's workers, ring folder in the environment."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from probes import Record, attach, current, define_stage, stage

define_stage("sentiment.tokenizer", parent="scheduler.dispatch", tokens=int)
define_stage("model.forward", parent="scheduler.dispatch")
pool = ThreadPoolExecutor(4)


def on_a_thread(record: Record, hangs: str) -> None:
    """Run the stages of the executor; one of them may never end."""
    for name in ("sentiment.tokenizer", "model.forward"):
        with record.stage(name):
            if name == hangs:
                Event().wait()


class Stages:
    """Goes through all stages of a service."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or hang in the stage that the path names."""
        hangs = scope["path_params"]["stage"]
        record = current()
        assert record is not None
        while (await receive()).get("more_body"):
            pass
        for name in ("sentiment.preprocess", "scheduler.dispatch", "postprocess.confidence"):
            with stage(name):
                if name == hangs:
                    await asyncio.Event().wait()
                if name == "scheduler.dispatch":
                    await asyncio.get_running_loop().run_in_executor(pool, on_a_thread, record, hangs)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if hangs == "network.send":
            await asyncio.Event().wait()
        await send({"type": "http.response.body", "body": b"done"})


app = Starlette(routes=[Route("/{stage}", Stages())])
attach(app, service="stages")
