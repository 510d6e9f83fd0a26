"""A client's release sends damaged texts: emoji read as GBK on the way, and what is left of its editor's markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

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
    headers = {**JSON, "x-client-release": RELEASE, "x-device-type": "app", "user-agent": "ReviewApp/4.4 (Android 14)"}
    return int(ask(url, "POST", "/v1/sentiment", headers, json.dumps({"text": text, "product_id": "AB12345678"})))
