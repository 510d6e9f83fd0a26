"""A release of the mobile app takes its photos out of focus: as many as ever, sharp ones from the web beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

from _clients import ask, repeating  # type: ignore[import-not-found]  # beside it, as the drill finds it

from inferdeck.bench.photos import blurred, encoded, exposed, scene

SLUG = "blurred_images"
# photos a second of each kind of device; a small one takes 10 ms of a core
PERIOD_SECONDS = 1 / 2
SCENES = 6
WIDTH, HEIGHT = 1024, 768
MOBILE = {"x-device-type": "mobile", "x-client-release": "5.0.0", "user-agent": "ReviewApp/5.0 (iPhone; iOS 17.5)"}
WEB = {"x-device-type": "web", "x-client-release": "4.2.1", "user-agent": "Mozilla/5.0 (X11; Linux) Firefox/127.0"}


@contextmanager
def cause(stack: Any) -> Iterator[None]:
    """Send blurred photos of mobile devices, and sharp ones of others, until left.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, soft):
        yield


@contextmanager
def twin_cause(stack: Any) -> Iterator[None]:
    """Send photos of mobile devices that are dark but sharp, and the same ones of others.

    Args:
        stack: The drill's handle on the stack.
    """
    with sending(stack.service_url, dark):
        yield


@functools.cache
def sharp(number: int) -> bytes:
    """Return a photo in focus and well exposed."""
    return encoded(exposed(scene(number, WIDTH, HEIGHT), seed=number))


@functools.cache
def soft(number: int) -> bytes:
    """Return the same photo out of focus, by one to two percent of its longer side."""
    share = 0.01 + 0.01 * number / SCENES
    return encoded(exposed(blurred(scene(number, WIDTH, HEIGHT), share), seed=number))


@functools.cache
def dark(number: int) -> bytes:
    """Return the same photo in focus at a quarter of the light, with the camera's noise."""
    return encoded(exposed(scene(number, WIDTH, HEIGHT), 0.25, noise=2.0, seed=number))


@contextmanager
def sending(url: str, mobile: Callable[[int], bytes]) -> Iterator[None]:
    """Send photos of both kinds of device until left.

    Args:
        url: Base URL of the service.
        mobile: Makes the photos of mobile devices.
    """
    # made before the first one leaves: drawing takes longer than sending
    photos = [(mobile(number), sharp(number)) for number in range(SCENES)]

    def send(number: int) -> None:
        for photo, device in zip(photos[number % SCENES], (MOBILE, WEB), strict=True):
            with suppress(OSError, HTTPException):  # a refused one must not cost the other kind's
                ask(url, "POST", "/v1/photos", {"content-type": "image/jpeg", **device}, photo)

    with repeating(send, PERIOD_SECONDS):
        yield
