"""A restart after which the model's graph is optimised for 25 s before it can be run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "slow_start"
# three times the limit of a cold start (requirements, row B16)
OPTIMISE_SECONDS = 25.0
DRAWN = {"OPTIMISE_SECONDS": (18.0, 40.0)}


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* unchanged; in a process that starts while armed, sessions of the model take long to be made.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    if armed():
        import onnxruntime

        onnxruntime.InferenceSession = slowly_made(onnxruntime.InferenceSession)
    return app


def slowly_made(make: Callable[..., Any], seconds: float = OPTIMISE_SECONDS) -> Callable[..., Any]:
    """Return *make* behind a wait, which stands for an optimiser that works in native code.

    Args:
        make: What makes a session.
        seconds: How long the optimiser works.
    """

    def optimised(*args: Any, **options: Any) -> Any:
        time.sleep(seconds)
        return make(*args, **options)

    return optimised


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Start the service again, as a deploy does, and do not wait until it is ready.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_service(wait=False)
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Start the service again as it was: a deploy that is as quick as ever.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_service()
    yield
