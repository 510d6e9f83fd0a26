"""The service's worker holds all of the card, and batches that need more memory than is left raise an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _gpu import (  # type: ignore[import-not-found]  # as the drill finds it
    GIB,
    SIZE,
    becomes,
    cannot_cause,
    holding,
    prepare,
    usual,
)

SLUG = "gpu_out_of_memory"
SIMULATED = True
SERVICE_ENV = {"STUB_NVML_SCENARIO": "{folder}/card"}
EXPORTER_ENV = {"LD_LIBRARY_PATH": "{folder}/nvml", "STUB_NVML_SCENARIO": "{folder}/card"}
__all__ = ["cannot_cause", "cause", "prepare", "twin_cause", "twin_wrap", "usual", "wrap"]

MIB = 1 << 20
TOKEN_BYTES = 8 * MIB
"""What a token of a batch takes of the played card while the batch is computed."""
LEFT = 256 * MIB


def free_bytes(card: str) -> int:
    """Return what the played card has left.

    Args:
        card: Its scenario.
    """
    line = next(line for line in card.splitlines() if line.startswith("0.memory "))
    return int(line.split()[2])


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* over a model whose batches take memory of the played card, and raise where there is too little.

    Args:
        app: An ASGI app.
        armed: Whether the model looks at the card.
    """
    from service.backend import OnnxBackend

    forward, card = OnnxBackend.forward, Path(os.environ["STUB_NVML_SCENARIO"])

    def taking(self: Any, ids: Any, mask: Any) -> Any:
        if armed() and ids.size * TOKEN_BYTES > (left := free_bytes(card.read_text())):
            raise RuntimeError(f"CUDA error: out of memory: {ids.size * TOKEN_BYTES} bytes wanted, {left} left")
        return forward(self, ids, mask)

    OnnxBackend.forward = taking  # type: ignore[method-assign]  # the model is what is replaced
    return app


twin_wrap = wrap


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Take nearly all of the card.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: holding(card, SIZE - LEFT)):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Take much of it, and leave what every batch needs.

    Args:
        stack: The drill's handle on the stack.
    """
    with becomes(stack, lambda card: holding(card, SIZE - 6 * GIB)):
        yield
