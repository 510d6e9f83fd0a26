"""A deploy makes the tokenizer's cache forget its bound, and a client sends texts of which no two are alike."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "tokenizer_cache_growth"
# So few that traffic fills it within seconds, as it would fill one of 10,000 within an hour.
SETTINGS = {"tokenizer_cache_texts": "200"}
TEXTS_AT_ONCE = 10
DRAWN = {"TEXTS_AT_ONCE": (6, 14)}
PERIOD_SECONDS = 0.25
SENTENCES = (
    "酒店位置在市中心，出门走几步就是地铁站",
    "前台小姐办手续很快，还帮忙拿了行李",
    "房间比照片上的小一点，但是打扫得干净",
    "早餐花样多，豆浆是现磨的，油条炸得有些老",
    "空调声音偏大，第二天换了一间才睡得安稳",
    "书的纸张薄，透过去能看见背面的字",
    "作者前三章讲得清楚，后面越写越乱，例子也旧",
    "笔记本的键盘手感软，风扇一开就呼呼作响",
    "屏幕颜色偏蓝，调了半天总算顺眼一些",
    "快递员把箱子扔在门口，连电话都没打",
    "客服让我拍照片发过去，等了三天没有回音",
    "总的说来对得起这个价，朋友来我还会推荐",
)
# As long as these: a twin that sends the same few again and again.
FEW = 8

Choose = Callable[[random.Random, int], str]


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* unchanged; in a process that starts while armed, the tokenizer's cache has no bound.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    if armed():
        import service.tokens

        service.tokens.keep = without_bound
    return app


def without_bound(encode: Callable[[str], Any], entries: int) -> Callable[[str], Any]:
    """Return *encode* that remembers all its answers."""
    del entries
    return functools.cache(encode)


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Deploy it, then send distinct texts until left.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_service()
    with sending(stack.service_url, distinct):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send as many texts, the same few again and again.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, repeated):
        yield


def distinct(rng: random.Random, _number: int) -> str:
    """Return a text that was not sent before."""
    return "，".join(rng.sample(SENTENCES, len(SENTENCES)))


def repeated(_rng: random.Random, number: int) -> str:
    """Return one of the few texts."""
    turn = number % FEW
    return "，".join((*SENTENCES[turn:], *SENTENCES[:turn]))


@contextmanager
def sending(url: str, choose: Choose) -> Iterator[None]:
    """Send texts until left."""
    rng = random.Random(7)

    def send_some(number: int) -> None:
        for place in range(TEXTS_AT_ONCE):
            text = choose(rng, number * TEXTS_AT_ONCE + place)
            ask(url, "POST", "/v1/sentiment", JSON, json.dumps({"text": text, "product_id": "AB12345678"}))

    with repeating(send_some, PERIOD_SECONDS):
        yield
