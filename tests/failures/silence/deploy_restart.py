"""The service is stopped in an orderly way and started again, as a deploy does, while requests come in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLUG = "deploy_restart"


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Restart the service and wait until it is ready.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_service()
    yield
