"""POST /v1/photos: what there is to say of a review's photo, before anybody reads it.

A photo is held until it is judged and nothing of it is kept. Memory: at most `places` photos of `body_bytes` that
arrive or wait, and one that is being decoded, by one thread, at most six bytes for each of `pixels`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from service.body_limit import Disconnected, Headers, Receive, read_body
from service.errors import Refusal, error_body
from service.executor import Executor
from service.recording import RequestRecord

if TYPE_CHECKING:
    from probes.images.quality import PhotoQuality

__all__ = ["TYPES", "PhotoEndpoint", "PhotoLimits"]

_log = logging.getLogger("service.photos")

TYPES: Final = ("image/jpeg", "image/png", "image/webp")
"""What may be said of a body; what it is, its first bytes tell."""

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Judge = Callable[[bytes, int], "PhotoQuality"]


@dataclass(frozen=True)
class PhotoLimits:
    """What photos may take.

    Attributes:
        body_bytes: Most bytes of one.
        receive_seconds: Most time for one to arrive.
        places: Most that arrive, wait or are judged at a time.
        pixels: One with more is not decoded.
    """

    body_bytes: int
    receive_seconds: float
    places: int
    pixels: int


class PhotoEndpoint:
    """The route's ASGI app, with a thread of its own: the model's threads are for texts.

    Args:
        limits: Bounds.
        record: Returns the row of the request that runs in this context.
    """

    def __init__(self, limits: PhotoLimits, record: Callable[[], RequestRecord]) -> None:
        self._limits = limits
        self._record = record
        self._executor = Executor(1, "photos")
        self._inside = 0
        self._judge: Judge | None = None

    def start(self) -> None:
        """Start the thread, which loads the decoder first; in the event loop, after any fork."""
        self._executor.start()
        self._executor.post(_load, self._loaded)

    def stop(self) -> None:
        """End the thread, within a bounded time."""
        self._executor.close()

    def _loaded(self, judge: Judge | None, error: Exception | None) -> None:
        self._judge = judge
        if error is not None:
            _log.warning("no photo can be judged: %s; mend: pip install 'inferdeck[images]'", error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started_ns = time.perf_counter_ns()
        record = self._record()
        try:
            found = await self._judged(scope["headers"], receive, record)
        except Refusal as refusal:
            if refusal.status < 500:
                record.refused(refusal.reason)
                if refusal.field is not None:
                    record.set(refused_field=refusal.field)
            body = error_body(refusal.reason, refusal.message, refusal.field)
            headers = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
            await _answer(send, refusal.status, body, headers)
        except Disconnected:
            return
        else:
            if found.reason is not None:
                record.low_quality()
                record.set(quality_modality="image", quality_reason=found.reason)
            await _answer(send, 200, _told(found, started_ns), [])

    async def _judged(self, headers: Headers, receive: Receive, record: RequestRecord) -> PhotoQuality:
        if self._inside >= self._limits.places:
            message = "as many photos as there is room for are being judged; ask again in 1 s"
            raise Refusal(429, "queue_full", message, headers={"retry-after": "1", "connection": "close"})
        # Counted from here, since what arrives takes memory before it waits for the thread.
        self._inside += 1
        try:
            _require_photo(headers)
            data = await read_body(receive, headers, self._limits.body_bytes, self._limits.receive_seconds)
            return await self._in_thread(data, record)
        finally:
            self._inside -= 1

    async def _in_thread(self, data: bytes, record: RequestRecord) -> PhotoQuality:
        judge, pixels, handed_ns = self._judge, self._limits.pixels, time.perf_counter_ns()
        if judge is None:
            raise Refusal(503, "other", "no photo can be judged here now; ask again", headers={"retry-after": "1"})

        def work() -> PhotoQuality:
            with record.stage("photo.quality", queue_wait_ns=time.perf_counter_ns() - handed_ns) as stage:
                found = judge(data, pixels)
                stage.set(verdict=found.verdict)
                if found.header is not None:
                    stage.set(pixels=found.header.pixels, format=found.header.format)
                if found.sharpness is not None:
                    stage.set(sharpness=found.sharpness)
                if found.brightness is not None:
                    stage.set(brightness=found.brightness)
            return found

        done: asyncio.Future[PhotoQuality] = asyncio.get_running_loop().create_future()

        def settle(found: PhotoQuality | None, error: Exception | None) -> None:
            if done.done():
                return
            if found is None:
                done.set_exception(error or RuntimeError("nothing was found"))
            else:
                done.set_result(found)

        self._executor.post(work, settle)
        # A request that is given up keeps its place until its photo is out of the thread's queue.
        return await _to_its_end(done)


async def _to_its_end(done: asyncio.Future[PhotoQuality]) -> PhotoQuality:
    """Wait for the thread's answer even while the request is cancelled, and pass the cancellation on afterwards."""
    given_up: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError as error:
            given_up = error
    if given_up is not None:
        raise given_up
    return done.result()


def _load() -> Judge:
    """Import the decoder, which is no work for the event loop, and keep it to one thread and quiet."""
    import cv2

    from probes.images.quality import judge_photo

    cv2.setNumThreads(1)
    # It would write a line for each broken photo that somebody sends; the JPEG and PNG libraries still write theirs.
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    return judge_photo


def _require_photo(headers: Headers) -> None:
    said = {value.strip().lower() for name, value in headers if name == b"content-type"}
    if len(said) != 1 or said.pop().decode("latin-1") not in TYPES:
        message = f"the content type must be one of {', '.join(TYPES)}"
        raise Refusal(415, "other", message, "content-type", {"connection": "close"})


def _told(found: PhotoQuality, started_ns: int) -> bytes:
    header = found.header
    answer = {
        "verdict": found.verdict,
        "low_quality": found.reason is not None,
        "reason": found.reason,
        "problem": found.problem,
        "sharpness": None if found.sharpness is None else round(found.sharpness, 2),
        "brightness": None if found.brightness is None else round(found.brightness, 4),
        "width": None if header is None else header.width,
        "height": None if header is None else header.height,
        "latency_ms": (time.perf_counter_ns() - started_ns) // 1000 / 1000,
    }
    return json.dumps(answer, separators=(",", ":")).encode()


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    fixed = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
