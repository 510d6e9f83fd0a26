"""A deploy reaches one worker of two: it masks personal data in a new format, the other one in the old."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "pii_mask_mismatch"
WORKERS = 2
PERIOD_SECONDS = 1 / 4
# the twin has three times as many texts with personal data
TWIN_PERIOD_SECONDS = PERIOD_SECONDS / 3
OLD, NEW = "1", "2"
TEXTS = (
    "有问题请打电话13812345678，谢谢",
    "Call me at 212 555 0123 about the refund, please.",
    "我的身份证是11010519491231002X，发票开错了",
    "退款退到卡上 6222 0212 3456 7890 128",
)


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* as the deploy left it: the first worker that is asked masks in the new format while armed.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    # One file for both workers: who makes it is the one that the deploy reached.
    mark = Path(os.environ["INFERDECK_DRILL_FLAG"]).with_name("deployed-worker")
    # [whether this worker was reached; None while nobody knows]
    reached: list[bool | None] = [None]

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            on = armed()
            if on and reached[0] is None:
                reached[0] = first(mark)
            if reached[0]:
                scope["app"].state.filters.mask_format = NEW if on else OLD
        await app(scope, receive, send)

    return handle


def first(mark: Path) -> bool:
    """Return whether this process is the first to leave its mark."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send texts with personal data until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: tell(stack.service_url, number), PERIOD_SECONDS):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send more texts with personal data, with the same format everywhere.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: tell(stack.service_url, number), TWIN_PERIOD_SECONDS):
        yield


def tell(url: str, number: int) -> int:
    """Send one text with personal data (made up, with right check digits) and return the status."""
    body = json.dumps({"text": TEXTS[number % len(TEXTS)], "product_id": "AB12345678"})
    return int(ask(url, "POST", "/v1/sentiment", {**JSON, "x-device-type": "web"}, body))
