"""Triton ends by SIGABRT after the last words of a backend that met an illegal memory access; these are replayed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from _clients import JSON, ask  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "illegal_memory_access"
BACKEND = "triton"
SIMULATED = True
CLIENTS = 8
# In the form of ONNX Runtime's CUDA provider and of a server that aborts (server#2979, onnxruntime#2963).
WORDS = """\
2026-12-01 03:14:07.328 [E:onnxruntime:log, cuda_call.cc:118 CudaCall] CUDA failure 700: an illegal memory access was \
encountered ; GPU=0 ; hostname=card-1 ; file=cuda_execution_provider.cc ; expr=cudaStreamSynchronize(stream_);
terminate called after throwing an instance of 'onnxruntime::OnnxRuntimeException'
  what():  CUDA failure 700: an illegal memory access was encountered
Signal (6) received.
"""
# What a server says that is asked to end.
CLEAN = """\
Signal (15) received.
I1201 03:14:07.328145 1 server.cc:305] "Waiting for in-flight requests to complete."
"""


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Let the server die of it with calls on the way.

    Args:
        stack: The drill's handle on the stack.
    """
    end(stack, WORDS, signal.SIGABRT)
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Let the server end as it does when it is asked to: with 0.

    Args:
        stack: The drill's handle on the stack.
    """
    end(stack, CLEAN, signal.SIGTERM)
    yield


def end(stack: Any, words: str, number: int) -> None:
    """Replay last words and end the server while clients wait for it.

    Args:
        stack: The drill's handle on the stack.
        words: What it says.
        number: What ends it.
    """
    (server,) = stack.triton_pids()
    (log,) = sorted(Path(stack.state_dir).rglob("tritonserver.log"))
    stubs = stack.triton_pids(stubs=True) if number == signal.SIGABRT else []
    with ThreadPoolExecutor(CLIENTS) as clients:
        # The batch is on the card when it happens.
        for pid in stubs:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for _ in range(CLIENTS):
            clients.submit(send, stack.service_url)
        try:
            time.sleep(0.1)
            with log.open("a", encoding="utf-8") as file:
                file.write(words)
            os.kill(server, number)
            # What it computes must not come to an end before it has.
            until = time.monotonic() + 5.0
            while alive(server) and time.monotonic() < until:
                time.sleep(0.01)
        finally:
            for pid in stubs:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def alive(pid: int) -> bool:
    """Return whether a process runs, or stands still."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def send(url: str) -> int:
    """Send one review on a connection of its own and return the status; 0 when there was no answer."""
    with suppress(OSError):
        body = json.dumps({"text": "房间很干净", "product_id": "AB12345678"})
        return int(ask(url, "POST", "/v1/sentiment", JSON, body, timeout=10))
    return 0
