"""A new version of the model answers NaN for one text in fifty; the stable version answers these."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from _versions import (  # type: ignore[import-not-found]  # beside it, as the drill finds it
    equal,
    rolled_out,
    sometimes_nan,
)

SLUG = "model_version_errors"
# so that one in fifty is some a minute at the traffic of a drill
SHARE = 0.5
# well below the share of refusals that is a failure of its own
REFUSED_PER_SECOND = 0.3


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Roll the version out.

    Args:
        stack: The drill's handle on the stack.
    """
    with rolled_out(stack, sometimes_nan, SHARE):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Roll out a sound version while a client sends requests that are refused.

    Args:
        stack: The drill's handle on the stack.
    """
    stop = threading.Event()
    client = threading.Thread(target=_send, args=(stack.service_url, stop), daemon=True)
    with rolled_out(stack, equal, SHARE):
        client.start()
        try:
            yield
        finally:
            stop.set()
            client.join(timeout=20)


def _send(url: str, stop: threading.Event) -> None:
    parts = urlsplit(url)
    while not stop.wait(1.0 / REFUSED_PER_SECOND):
        connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=10)
        try:
            body = json.dumps({"text": "it's not in the contract", "product_id": "HT20240117"})
            connection.request("POST", "/v1/sentiment", body, {"content-type": "application/json"})
            connection.getresponse().read()
        except OSError:
            continue
        finally:
            connection.close()
