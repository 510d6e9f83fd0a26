"""A plugin loads three more tokenizers at the start, side by side with the model's, and all wait for one lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SLUG = "tokenizer_load_lock"
# What one load takes: a file on a slow share. Four of them are half as long again as a start may take.
LOAD_SECONDS = 3.0
PLUGINS = 3
DRAWN = {"LOAD_SECONDS": (2.5, 4.0), "PLUGINS": (2, 4)}


def wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* unchanged; in a process that starts while armed, tokenizers are loaded behind one lock.

    Args:
        app: An ASGI app.
        armed: Whether the failure is on.
    """
    if armed():
        load_slowly(PLUGINS)
    return app


def twin_wrap(app: Any, armed: Callable[[], bool]) -> Any:
    """Return *app* unchanged; in a process that starts while armed, the one tokenizer comes from the same slow share.

    Args:
        app: An ASGI app.
        armed: Whether the twin is on.
    """
    if armed():
        load_slowly(0)
    return app


def load_slowly(plugins: int, seconds: float = LOAD_SECONDS) -> list[threading.Thread]:
    """Put one lock around the reading of tokenizers, and start threads that want some of their own.

    Args:
        plugins: How many threads.
        seconds: How long reading one takes.
    """
    import service.tokens
    from service.artifacts import TOKENIZER_FILE
    from service.settings import load_settings

    read, lock = service.tokens.read_tokenizer, threading.Lock()
    wanted = load_settings().model_dir / TOKENIZER_FILE

    def slowly(path: Path) -> Any:
        with lock:
            time.sleep(seconds)
            return read(path)

    def want_one() -> None:
        with suppress(Exception):
            service.tokens.load_tokenizer(wanted)

    service.tokens.read_tokenizer = slowly
    threads = [threading.Thread(target=want_one, name=f"plugin-{number}", daemon=True) for number in range(plugins)]
    for thread in threads:
        thread.start()
    return threads


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
    """Start the service again and wait until it is ready.

    Args:
        stack: The drill's handle on the stack.
    """
    stack.restart_service()
    yield
