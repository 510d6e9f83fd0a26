"""After a deploy each message of the stream waits for a look-up of a tenth of a second, and as many come as before."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.failures._clients import repeating

SLUG = "stream_lag"
STREAM = True
# What users send all the time, healthy or not.
MESSAGES_A_SECOND = 50
_PERIOD_SECONDS = 0.2
LOOK_UP_SECONDS = 0.1
# The twin's look-up is quick, and what comes at once takes a reader with it most of a minute.
TWIN_LOOK_UP_SECONDS = 0.001
BURST = 40_000
_VARIABLE = "STREAM_LAG_LOOK_UP_SECONDS"
_QUESTIONS = ("how long does delivery take", "这个尺码偏大吗", "can I return it after a week", "什么时候有货")
_DEVICES = ("mobile", "web", "app")


def look_up(_read: object) -> None:
    """Wait as for somebody else's answer; the stream calls it with each message."""
    time.sleep(float(os.environ[_VARIABLE]))


def lines(begin: int, count: int, at_s: float) -> bytes:
    """Return messages by their numbers, as lines of a file.

    Args:
        begin: Number of the first.
        count: How many.
        at_s: When they are asked, seconds since 1970.
    """
    stamp = datetime.fromtimestamp(at_s, UTC).isoformat()
    made = (
        {
            "session_id": f"session-{number % 997:012d}",
            "utterance": f"{_QUESTIONS[number % len(_QUESTIONS)]} {number}",
            "timestamp": stamp,
            "device_type": _DEVICES[number % len(_DEVICES)],
        }
        for number in range(begin, begin + count)
    )
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in made)


def append(path: Path, content: bytes) -> None:
    """Write lines behind those that are there, all at once."""
    with path.open("ab") as file:
        file.write(content)


@contextmanager
def usual(stack: Any) -> Iterator[None]:
    """Let users ask all the time.

    Args:
        stack: The drill's handle on the stack.
    """
    path, each = stack.stream_folder / "users.jsonl", round(MESSAGES_A_SECOND * _PERIOD_SECONDS)
    with repeating(lambda number: append(path, lines(number * each, each, time.time())), _PERIOD_SECONDS):
        yield


def _deployed(seconds: float) -> dict[str, str]:
    return {"INFERDECK_STREAM_STEPS": f"{Path(__file__).absolute()}:look_up", _VARIABLE: str(seconds)}


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Deploy the slow look-up; at the end the one without it.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_stream(_deployed(LOOK_UP_SECONDS))
    try:
        yield
    finally:
        stack.deploy_stream({"INFERDECK_STREAM_STEPS": ""})


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Deploy a quick look-up, and let many messages come at once, which then become fewer.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.deploy_stream(_deployed(TWIN_LOOK_UP_SECONDS))
    try:
        append(stack.stream_folder / "burst.jsonl", lines(10**9, BURST, time.time()))
        yield
    finally:
        stack.deploy_stream({"INFERDECK_STREAM_STEPS": ""})
