"""The service through Triton beside what people write first: FastAPI and tritonclient, nothing else; by `bench serve`.

Both ask the same Triton for the same model, pad to the same length, and answer the same body; windows alternate. The
bare app checks no contract beyond its schema, masks nothing, limits nothing, records nothing and has nobody to answer
when Triton does not.
"""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from inferdeck.bench.children import Child, log_tail, spawn
from inferdeck.bench.load import Load, run_wrk
from inferdeck.bench.real_service import run_service
from inferdeck.errors import CannotRun
from inferdeck.stack.ports import free_ports

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["CLIENTS", "RATIO_MIN", "Bare", "create_app", "measure_bare_ratio", "shape_bare"]

CLIENTS: Final = 32
MANY: Final = 100
RATIO_MIN: Final = 0.85
"""Issue 5, figures."""
PAD: Final = 512
START_SECONDS: Final = 60.0
_MODEL: Final = "INFERDECK_BENCH_MODEL"
_TRITON: Final = "INFERDECK_BENCH_TRITON"


@dataclass(frozen=True)
class Bare:
    """What was measured.

    Attributes:
        pairs: Loads of each round: through the service, through the bare app.
        many: 100 clients at once, through the service.
    """

    pairs: list[tuple[Load, Load]]
    many: Load


class Query(BaseModel):
    """The body; at the module's level, where FastAPI finds the annotation's name."""

    text: str
    product_id: str


def create_app() -> FastAPI:
    """Return the bare app; model folder and Triton's address come from the environment."""
    import numpy as np
    from fastapi import FastAPI
    from tritonclient.http.aio import InferenceServerClient, InferInput

    from service.loading import load_onnx
    from service.postprocess.confidence import verdict

    local, _ = load_onnx(Path(os.environ[_MODEL]), 0)
    clients: list[InferenceServerClient] = []
    app = FastAPI()

    @app.post("/v1/sentiment")
    async def judge(query: Query) -> dict[str, Any]:
        if not clients:
            clients.append(InferenceServerClient(os.environ[_TRITON], conn_limit=CLIENTS))
        ids = local.encode(query.text).ids
        tokens, mask = np.zeros((1, PAD), np.int64), np.zeros((1, PAD), np.int64)
        tokens[0, : len(ids)], mask[0, : len(ids)] = ids, 1
        inputs = []
        for name, array in (("input_ids", tokens), ("attention_mask", mask)):
            inputs.append(InferInput(name, array.shape, "INT64"))
            inputs[-1].set_data_from_numpy(array)
        result = await clients[0].infer("sentiment", inputs, model_version="2")
        found = verdict(result.as_numpy("logits")[0].tolist(), local.temperature, local.labels)
        return {"sentiment": found.label, "confidence": found.confidence, "latency_ms": 0.0}

    return app


def measure_bare_ratio(
    wrk: Path, folder: Path, model: Path, bodies: Path, triton_port: int, *, rounds: int, seconds: float
) -> Bare:
    """Load the service and the bare app in turn, in front of one Triton.

    Args:
        wrk: The load generator.
        folder: For logs and rows.
        model: The model's folder, absolute.
        bodies: File of JSON bodies.
        triton_port: Where Triton answers over HTTP.
        rounds: Of a window of each kind; a first one that only warms up is not counted.
        seconds: Length of a window.

    Raises:
        CannotRun: If a process ends, or does not get ready.
    """
    settings = {"INFERDECK_SERVICE_BACKEND": "triton", "INFERDECK_SERVICE_TRITON_PORT": str(triton_port)}
    environment = {_MODEL: str(model), _TRITON: f"127.0.0.1:{triton_port}"}
    argv = ["-m", "uvicorn", "--factory", "inferdeck.bench.triton_bare:create_app", "--host", "127.0.0.1"]
    (port,) = free_ports(1)
    argv += ["--port", str(port), "--no-access-log", "--log-level", "warning"]
    with (
        run_service("triton-service", folder, model, recorder=True, settings=settings) as (service, _ready),
        spawn("triton-bare", argv, folder, environment) as bare,
    ):
        bare.port = port
        _wait_until_open(bare)
        pairs = [
            (run_wrk(wrk, service.url, length, CLIENTS, bodies), run_wrk(wrk, bare.url, length, CLIENTS, bodies))
            for length in (1.0, *[seconds] * rounds)
        ]
        if broken := sum(theirs.refused + theirs.broken for _, theirs in pairs):
            # An app that refuses is quick: what it does a second would be a figure of nothing.
            raise CannotRun(f"the bare app failed on {broken} requests: {log_tail(bare.log)}", f"see {bare.log}")
        return Bare(pairs[1:], run_wrk(wrk, service.url, seconds, MANY, bodies))


def _wait_until_open(child: Child) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        child.alive_or_raise()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", child.port)) == 0:
                return
        if time.monotonic() > until:
            raise CannotRun(f"{child.name} did not start: {log_tail(child.log)}", f"see {child.log}")
        time.sleep(0.05)


def shape_bare(bare: Bare | None) -> Mapping[str, Any]:
    """Return what `backends.triton` says; `bare_ratio` alone, and null, where there is no Triton."""
    if bare is None:
        return {"bare_ratio": None}
    ratios = [ours.rps / theirs.rps for ours, theirs in bare.pairs]
    return {
        "bare_ratio": round(statistics.median(ratios), 4),
        "rps": round(statistics.median(ours.rps for ours, _ in bare.pairs), 1),
        "bare_rps": round(statistics.median(theirs.rps for _, theirs in bare.pairs), 1),
        "p50_s": statistics.median(ours.p50_s for ours, _ in bare.pairs),
        "p95_s": statistics.median(ours.p95_s for ours, _ in bare.pairs),
        "p99_s": statistics.median(ours.p99_s for ours, _ in bare.pairs),
        "errors": sum(ours.refused + ours.broken for ours, _ in bare.pairs),
        "clients_100_failures": bare.many.refused + bare.many.broken,
        "bare_ratio_min": RATIO_MIN,
    }
