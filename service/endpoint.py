"""POST /v1/sentiment as plain ASGI: from bytes to bytes, with every refusal in the contract's shape."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from service.body_limit import Disconnected, Headers, Receive, read_body
from service.degradation.fallback import Deferred
from service.degradation.results_endpoint import accepted
from service.errors import Refusal, error_body
from service.filters.chain import FilterChain
from service.lifecycle import Lifecycle
from service.predict import Judgement, Predictor
from service.recording import RequestRecord

__all__ = ["Limits", "SentimentEndpoint", "not_ready"]

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Scope = MutableMapping[str, Any]

_MEND: Final = "inferdeck train"


@dataclass(frozen=True)
class Limits:
    """What a request's body may take.

    Attributes:
        body_bytes: Most bytes.
        receive_seconds: Most time for all of them to arrive.
    """

    body_bytes: int
    receive_seconds: float


def not_ready(lifecycle: Lifecycle) -> Refusal:
    """Return the refusal for a request that came before the model; paths and details stay on the admin port."""
    state = lifecycle.state
    if state.failed:
        mend = "see the admin port" if state.phase == "model_failed" else _MEND
        message = f"there is no model ({state.phase}); mend: {mend}"
    else:
        message = f"the service is warming up ({state.phase}); ask again in a moment"
    return Refusal(503, "other", message, headers={"retry-after": "1"})


async def _answer(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    fixed = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})


class SentimentEndpoint:
    """The route's ASGI app.

    Args:
        lifecycle: Where the loaded model is found.
        predictor: Judges a cleaned text.
        limits: Bounds of a body.
        filters: What a request passes before the model.
        record: Returns the row of the request that runs in this context.
        priority: Says of a product id and headers whether the request goes first.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        predictor: Predictor,
        limits: Limits,
        *,
        filters: FilterChain,
        record: Callable[[], RequestRecord],
        priority: Callable[[str, Headers], bool],
    ) -> None:
        self._lifecycle = lifecycle
        self._predictor = predictor
        self._limits = limits
        self._filters = filters
        self._record = record
        self._priority = priority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started_ns = time.perf_counter_ns()
        record = self._record()
        body = b""
        try:
            headers = scope["headers"]
            self._filters.protocol(headers, record)
            body = await read_body(receive, headers, self._limits.body_bytes, self._limits.receive_seconds)
            text, product_id = self._filters.text(body, record)
            body = b""
            backend = self._lifecycle.backend
            if backend is None:
                raise not_ready(self._lifecycle)
            vip = self._priority(product_id, headers)
            judgement = await self._predictor.judge(backend, text, record, vip=vip, receive=receive, headers=headers)
        except Refusal as refusal:
            # 503 is no refusal of this request: the row says error by its status, with the reason beside it.
            if refusal.status < 500:
                record.refused(refusal.reason)
                if refusal.field is not None:
                    record.set(refused_field=refusal.field)
                self._filters.refused(refusal, body, record)
            else:
                record.set(reason="memory" if refusal.reason == "memory" else self._lifecycle.state.phase)
            content = error_body(refusal.reason, refusal.message, refusal.field)
            named = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
            await _answer(send, refusal.status, content, named)
        except Disconnected:
            # Nobody is there to be answered; the recorder has seen the disconnect itself.
            return
        else:
            if isinstance(judgement, Deferred):
                await _answer(send, *accepted(judgement))
                return
            await self._judged(send, judgement, started_ns)
            if judgement.afterwards is not None:
                # The caller has the answer; the row waits for this, for a bounded time.
                await judgement.afterwards()

    @staticmethod
    async def _judged(send: Send, judgement: Judgement, started_ns: int) -> None:
        answer: dict[str, str | float | bool] = {
            "sentiment": judgement.sentiment,
            "confidence": round(judgement.confidence, 6),
            "latency_ms": (time.perf_counter_ns() - started_ns) // 1000 / 1000,
        }
        headers: list[tuple[bytes, bytes]] = []
        if judgement.degraded is not None:
            answer["degraded"] = True
            headers.append((b"x-degraded", judgement.degraded.encode()))
        if judgement.version:
            headers.append((b"x-model-version", judgement.version.encode()))
        await _answer(send, 200, json.dumps(answer, separators=(",", ":")).encode(), headers)
