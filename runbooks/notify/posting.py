"""Post one request within limits: time, size of the answer, no redirection; never an exception, never a secret."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import httpx

from runbooks.notify.links import shown_url
from runbooks.notify.outcome import Outcome, Request, by_status, refused, retry

__all__ = ["ANSWER_SECONDS", "post"]

# A receiver that has not answered by then is slow, and is asked again later.
ANSWER_SECONDS: Final = 10.0
# Answers are a word or a small object.
_MOST_ANSWER: Final = 16_384

Judge = Callable[[int, bytes, str], Outcome]


def by_status_alone(status: int, body: bytes, retry_after: str) -> Outcome:
    """Judge an answer by its status."""
    return by_status(status, body[:200].decode("utf-8", "replace"), retry_after)


def post(request: Request, judge: Judge = by_status_alone, seconds: float = ANSWER_SECONDS) -> Outcome:
    """Post a request and return what became of it.

    Args:
        request: The request.
        judge: Told status, body (its first 16 kB) and the header Retry-After.
        seconds: For all of it; a receiver that sends a byte now and then is cut off.
    """
    end = time.monotonic() + seconds
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=seconds, follow_redirects=False, trust_env=True) as client,
            client.stream("POST", request.url, content=request.body, headers=list(request.headers)) as answer,
        ):
            for chunk in answer.iter_raw():
                body += chunk
                if len(body) > _MOST_ANSWER or time.monotonic() > end:
                    break
            if time.monotonic() > end:
                return retry(f"{shown_url(request.url)} did not answer within {seconds:g} s")
            return judge(answer.status_code, bytes(body[:_MOST_ANSWER]), answer.headers.get("retry-after", ""))
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        return refused(f"{shown_url(request.url)} is no address of HTTP")
    except httpx.TimeoutException:
        return retry(f"{shown_url(request.url)} did not answer within {seconds:g} s")
    except (httpx.HTTPError, OSError) as error:
        # Their texts may hold the address, which may hold a secret: only the kind is told.
        return retry(f"{shown_url(request.url)} cannot be reached ({type(error).__name__})")
