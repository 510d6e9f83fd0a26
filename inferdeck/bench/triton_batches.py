"""What calls of eight texts gain over single ones, with a real Triton: one figure of `bench serve`.

Eight callers, each of which waits for its answer, in alternating windows. Fewer would flatter: a lone single call waits
the 10 ms of Triton's own queue, which eight of one shape fill at once. Where Triton's environment is not there
(`inferdeck triton install`) nothing is measured, and that is said by null.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from inferdeck.bench.children import log_tail, spawn
from inferdeck.errors import CannotRun
from inferdeck.stack.ports import free_ports
from inferdeck.stack.triton import triton_folder
from inferdeck.version import ROOT
from service.triton.home import Home
from service.triton.repository import MODEL
from service.triton.transport import TritonError, TritonHttp

__all__ = ["BATCH", "gain_of", "measure_batching_gain", "running_triton"]

BATCH: Final = 8
CALLERS: Final = 8
TOKENS: Final = 128
START_SECONDS: Final = 60.0
_CALL_SECONDS: Final = 10.0


@contextmanager
def running_triton(model: Path, folder: Path) -> Iterator[int | None]:
    """Run a real Triton while the body runs; yield its HTTP port, or None where its environment is not there.

    Args:
        model: The model's folder, both versions in it.
        folder: For logs and Triton's own files.

    Raises:
        CannotRun: If Triton does not get ready.
    """
    home = Home(triton_folder())
    if home.lacks() is not None:
        yield None
        return
    port, metrics_port, admin_port = free_ports(3)
    work = folder / "triton"
    work.mkdir(mode=0o700)
    argv = ["-P", "-m", "service.triton", "--home", str(home.folder), "--models", str(model), "--work", str(work)]
    argv += ["--http-port", str(port), "--metrics-port", str(metrics_port), "--admin-port", str(admin_port)]
    with (
        closing(TritonHttp("127.0.0.1", port, MODEL, 1)) as client,
        spawn("triton-supervisor", argv, folder, {"PYTHONPATH": str(ROOT)}) as child,
    ):
        until = time.monotonic() + START_SECONDS
        while not _answers(client):
            child.alive_or_raise()
            if time.monotonic() > until:
                raise CannotRun(f"Triton was not ready in time: {log_tail(child.log)}", f"see {work}")
            time.sleep(0.1)
        yield port


def measure_batching_gain(port: int, rounds: int, seconds: float) -> float:
    """Return texts a second in calls of eight over those in single calls, the median of rounds.

    Args:
        port: Where Triton answers over HTTP.
        rounds: Of a window of each kind.
        seconds: Length of a window.
    """
    with closing(TritonHttp("127.0.0.1", port, MODEL, CALLERS)) as client:
        return gain_of([(_rate(client, 1, seconds), _rate(client, BATCH, seconds)) for _ in range(rounds)])


def gain_of(rates: list[tuple[float, float]]) -> float:
    """Return the median over rounds of texts a second in calls of eight over those in single calls."""
    return round(statistics.median(batched / single for single, batched in rates), 2)


def _answers(client: TritonHttp) -> bool:
    try:
        _call(client, 1)
    except TritonError:
        return False
    return True


def _call(client: TritonHttp, size: int) -> None:
    ids = np.full((size, TOKENS), 7, dtype=np.int64)
    client.infer(ids, np.ones_like(ids), version="2", seconds=_CALL_SECONDS)


def _rate(client: TritonHttp, size: int, seconds: float) -> float:
    """Return texts a second."""
    until = time.perf_counter() + seconds

    def caller(_number: int) -> int:
        calls = 0
        while time.perf_counter() < until:
            _call(client, size)
            calls += 1
        return calls

    started = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = sum(pool.map(caller, range(CALLERS)))
    return calls * size / (time.perf_counter() - started)
