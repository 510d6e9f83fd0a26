"""A client's release sends damaged texts: emoji read as GBK on the way, and what is left of its editor's markup."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from service.text.contract import to_contract

SLUG = "low_quality_text"
# beside 20 requests a second of others: one request in five has the new release
PERIOD_SECONDS = 1 / 5
RELEASE = "4.4.0"
REVIEWS = (
    "房间很干净😀😀，服务员态度也好👍👍👍，下次还来🎉",
    "物流很快🚚🚚，包装完好🎁🎁🎁，好评😍😍😍😍",
    "Great phone 📱📱📱, the battery lasts two days 🔋🔋, love it ❤❤❤",
    "一般般吧😐😐，没有想象中的好😞，不会再买了🙅🙅",
)


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send damaged texts until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: send(stack.service_url, damaged(number)), PERIOD_SECONDS):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send the same reviews, rich in emoji, as a careful client does: without what the contract refuses.

    Args:
        stack: The drill's handle on the stack.
    """
    with repeating(lambda number: send(stack.service_url, careful(number)), PERIOD_SECONDS):
        yield


def careful(number: int) -> str:
    """Return a review whose emoji the client took out."""
    return to_contract(REVIEWS[number % len(REVIEWS)])


def damaged(number: int) -> str:
    """Return a review as this release sends it, every other one with the editor's markup instead of its emoji."""
    review = REVIEWS[number % len(REVIEWS)]
    if number % 2:
        # the rich text editor writes entities and tags; the release drops the marks that the contract refuses
        html = "<p>" + review.replace("，", "，&nbsp;&nbsp;<br/><br/>").replace(", ", ",&nbsp;<br/> <br/>") + "</p>"
        return to_contract(html.translate(str.maketrans("<>/&", "    ")))
    # an older gateway cuts emoji in half and writes U+FFFD; the next one reads its UTF-8 as GBK
    halves = "".join(one if one < "\U00010000" else "\ufffd\ufffd" for one in review)
    broken = halves.replace("\ufffd\ufffd", "\ufffd\ufffd".encode().decode("gbk"))
    return "".join(one for one in broken if one not in "❤\ufffd")


def send(url: str, text: str) -> int:
    """Send one review of the release on a connection of its own and return the status."""
    parts = urlsplit(url)
    headers = {"content-type": "application/json", "x-client-release": RELEASE, "x-device-type": "app"}
    headers["user-agent"] = "ReviewApp/4.4 (Android 14)"
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=5)
    try:
        connection.request("POST", "/v1/sentiment", json.dumps({"text": text, "product_id": "AB12345678"}), headers)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def repeating(action: Any, period_seconds: float) -> Iterator[None]:
    """Run an action again and again in a thread until left; what it raises is not ours to end the drill with."""
    over = threading.Event()

    def run() -> None:
        for number in count():
            with suppress(Exception):
                action(number)
            if over.wait(period_seconds):
                return

    thread = threading.Thread(target=run, name="clients", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=10)
