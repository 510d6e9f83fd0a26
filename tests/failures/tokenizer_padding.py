"""A client puts one text of some 500 tokens among the short ones of each batch; all are padded to its length."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from _clients import JSON, ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

SLUG = "tokenizer_padding"
# A model for which the width of a batch counts, and batches at all; long enough a wait for eight on a busy machine.
SETTINGS = {"model": "transformer", "scheduler_batching": "true", "batch_size": "8", "batch_wait_seconds": "0.03"}
BATCH = 8
PERIOD_SECONDS = 0.5
# Just short of what waits in a queue of its own (500 characters): each of these characters is a token.
LONG_CHARACTERS = 490
SHORT = ("房间很干净", "物流很快，包装完好", "一般般吧", "质量不错", "Great phone", "not worth it", "客服态度很差")
SENTENCES = (
    "酒店位置在市中心，出门走几步就是地铁站",
    "前台小姐办手续很快，还帮忙拿了行李",
    "房间比照片上的小一点，但是打扫得干净",
    "晚上隔壁装修到九点多，打电话投诉也没有用",
    "早餐花样多，豆浆是现磨的，油条炸得有些老",
    "空调声音偏大，第二天换了一间才睡得安稳",
    "浴室的水忽冷忽热，毛巾有洗不掉的黄印",
    "书的纸张薄，透过去能看见背面的字",
    "作者前三章讲得清楚，后面越写越乱，例子也旧",
    "笔记本的键盘手感软，风扇一开就呼呼作响",
    "屏幕颜色偏蓝，调了半天总算顺眼一些",
    "电池充满能用五个小时，看电影就短得多",
    "快递员把箱子扔在门口，连电话都没打",
    "客服让我拍照片发过去，等了三天没有回音",
    "价钱比专卖店便宜两百块，发票也开了",
    "总的说来对得起这个价，朋友来我还会推荐",
)

Texts = Callable[[random.Random], list[str]]


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send such batches until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, mixed):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send batches that are long through and through: as much work, and nobody is padded.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, uniform):
        yield


def mixed(rng: random.Random) -> list[str]:
    """Return the texts of a batch, one of them long."""
    return [long_text(rng), *rng.sample(SHORT, BATCH - 1)]


def uniform(rng: random.Random) -> list[str]:
    """Return the texts of a batch, all of them long; half as many, or a busy machine would be short of CPU."""
    return [long_text(rng) for _ in range(BATCH // 2)]


def long_text(rng: random.Random) -> str:
    """Return a review of many sentences, no two in the same order."""
    told: list[str] = []
    while sum(map(len, told)) + len(told) < LONG_CHARACTERS:
        told += rng.sample(SENTENCES, len(SENTENCES))
    return "，".join(told)[:LONG_CHARACTERS]


@contextmanager
def sending(url: str, texts: Texts) -> Iterator[None]:
    """Send the texts of a batch at one time, again and again, until left."""
    rng = random.Random(5)
    with ThreadPoolExecutor(BATCH) as clients:

        def send_batch(_number: int) -> None:
            list(clients.map(lambda text: send(url, text), texts(rng)))

        with repeating(send_batch, PERIOD_SECONDS):
            yield


def send(url: str, text: str) -> int:
    """Send one review on a connection of its own and return the status."""
    return int(
        ask(url, "POST", "/v1/sentiment", JSON, json.dumps({"text": text, "product_id": "AB12345678"}), timeout=10)
    )
