"""The model is taken out of Triton by its repository API while the server stays there."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "triton_model_unloaded"
BACKEND = "triton"


def _call(stack: Any, verb: str) -> None:
    url = f"{stack.triton_url}/v2/repository/models/sentiment/{verb}"
    request = urllib.request.Request(url, data=b"{}", method="POST")  # noqa: S310 - a loopback address of the drill
    with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - as above
        return


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Unload the model; nobody loads it again until the drill ends.

    Args:
        stack: The drill's handle on the stack.
    """
    _call(stack, "unload")
    yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Unload and load at once, as whoever puts in new weights does.

    Args:
        stack: The drill's handle on the stack.
    """
    _call(stack, "unload")
    _call(stack, "load")
    yield
