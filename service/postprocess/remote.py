"""Postprocessing behind a Unix socket; one that does not answer costs a request its patience, no more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import httpx

from service.breaker import Breaker
from service.postprocess.confidence import Verdict, Where, verdict

__all__ = ["OverSocket"]

_log = logging.getLogger("service.postprocess")


class OverSocket:
    """Postprocessing behind a Unix socket.

    Args:
        path: The socket.
        timeout_seconds: Longest wait for an answer; beyond it this process does the work.
        connections: Most at one time; who finds none free within the timeout is served in process.
        breaker: Leaves a socket that fails alone for a while.
    """

    def __init__(
        self, path: Path, timeout_seconds: float = 0.05, connections: int = 32, breaker: Breaker | None = None
    ) -> None:
        transport = httpx.AsyncHTTPTransport(
            uds=str(path), limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        )
        self._client = httpx.AsyncClient(
            transport=transport, base_url="http://postprocess", timeout=timeout_seconds, trust_env=False
        )
        self._timeout = timeout_seconds
        self._breaker = breaker or Breaker()

    async def judge(self, logits: Sequence[float], temperature: float, labels: Sequence[str]) -> tuple[Verdict, Where]:
        """Return what the logits say, and where that was found out."""
        if not self._breaker.allow():
            return verdict(logits, temperature, labels), "fallback"
        try:
            body = {"logits": list(logits), "temperature": temperature, "labels": list(labels)}
            # httpx's own timeout holds for each of connecting, sending and reading; this one for all of them.
            async with asyncio.timeout(self._timeout):
                response = await self._client.post("/v1/confidence", json=body)
            found = _read(response, labels)
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            self._failed(error)
            return verdict(logits, temperature, labels), "fallback"
        except BaseException:
            # The request was cancelled: that says nothing about the socket.
            self._breaker.released()
            raise
        self._breaker.succeeded()
        return found, "socket"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _failed(self, error: Exception) -> None:
        opened = self._breaker.opened
        self._breaker.failed()
        if self._breaker.opened != opened:
            _log.warning("postprocessing in process, its socket fails: %s", type(error).__name__)


def _read(response: httpx.Response, labels: Sequence[str]) -> Verdict:
    """Return the verdict of an answer.

    Raises:
        ValueError: If it is none.
    """
    if response.status_code != httpx.codes.OK:
        raise ValueError(f"status {response.status_code}")
    told = response.json()
    label, confidence = (told.get("label"), told.get("confidence")) if isinstance(told, dict) else (None, None)
    if label not in labels or not isinstance(confidence, float | int) or not 0 <= confidence <= 1:
        raise ValueError("not a verdict")
    return Verdict(str(label), float(confidence))
