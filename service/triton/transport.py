"""Calls to Triton over HTTP: a fixed number of kept connections, a deadline for each call, answers held to their shape.

HTTP and not gRPC, since this server (2.51) dies of gRPC calls that are cancelled or run into their deadline
(server#7368, #8034); 160,000 calls over HTTP with 31,500 timeouts did it no harm. Bodies are made and read by
tritonclient; the connections are the standard library's, because calls come from the service's worker threads and
tritonclient's pool belongs to one thread of gevent.

Memory: `connections` sockets.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from queue import Empty, LifoQueue
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Call", "TritonError", "TritonHttp", "reason_of"]

REASONS: Final = ("refused", "timeout", "no_connection", "broken", "stub_dead", "unloaded", "error", "wrong_answer")


class TritonError(RuntimeError):
    """Triton did not answer a call as it should.

    Attributes:
        reason: One of REASONS.
        status: HTTP status that came, 500 when none did.
    """

    def __init__(self, reason: str, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


@dataclass
class Call:
    """What one call spent its time on, in nanoseconds.

    Attributes:
        pool_wait_ns: Waiting for a connection.
        serialize_ns: Making the body.
        wait_ns: From the first byte sent to the last received.
        deserialize_ns: Reading the answer.
    """

    pool_wait_ns: int = 0
    serialize_ns: int = 0
    wait_ns: int = 0
    deserialize_ns: int = 0


def reason_of(status: int, message: str) -> str:
    """Return why Triton refused, from what it says: its status alone does not tell a dead stub from a bad input."""
    if "is not healthy" in message or "Stub process" in message:
        return "stub_dead"
    if status == 503 or "is not at ready state" in message or "not found" in message or "unknown model" in message:
        return "unloaded"
    return "error"


class _Connection(http.client.HTTPConnection):
    """A connection without Nagle's delay: a small request must not wait for the last one's acknowledgement."""

    def connect(self) -> None:
        import socket

        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class TritonHttp:
    """One model of a Triton.

    Args:
        host: Address.
        port: Port of its HTTP service.
        model: Name of the model.
        connections: Most calls at one time.
        clock: Nanoseconds.
    """

    def __init__(
        self, host: str, port: int, model: str, connections: int, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        from tritonclient.http import InferenceServerClient, InferInput

        self._make, self._client = InferInput, InferenceServerClient
        self._host, self._port, self._model, self._clock = host, port, model, clock
        # Last in, first out: with little traffic few connections are in use, and those are warm.
        self._idle: LifoQueue[_Connection] = LifoQueue()
        for _ in range(connections):
            self._idle.put(_Connection(host, port))

    def infer(
        self,
        ids: NDArray[np.int64],
        mask: NDArray[np.int64],
        *,
        version: str,
        seconds: float,
        headers: dict[str, str] | None = None,
        call: Call | None = None,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> NDArray[np.float32]:
        """Return the logits [batch, labels].

        Args:
            ids: [batch, seq].
            mask: [batch, seq].
            version: Version of the model.
            seconds: Most time for the call, the wait for a connection included.
            headers: Sent along, such as traceparent.
            call: Gets what the time went into.
            around: Entered while Triton has the request.

        Raises:
            TritonError: If there is no answer in time, or it is no answer.
        """
        call = call or Call()
        clock = self._clock
        began = clock()
        until = began + int(max(seconds, 0.0) * 1e9)
        body, size = self._body(ids, mask)
        made = clock()
        call.serialize_ns = made - began
        try:
            connection = self._idle.get(timeout=max(0.001, (until - made) / 1e9))
        except Empty:
            call.pool_wait_ns = clock() - made
            raise TritonError("no_connection", "all connections to Triton are in use") from None
        sent = clock()
        call.pool_wait_ns = sent - made
        told = {"Inference-Header-Content-Length": str(size), **(headers or {})}
        path = f"/v2/models/{self._model}/versions/{version}/infer"
        try:
            status, length, content = self._exchange(connection, path, body, told, until=until, around=around)
        finally:
            call.wait_ns = clock() - sent
            self._idle.put(connection)
        received = clock()
        try:
            return self._read(status, length, content)
        finally:
            call.deserialize_ns = clock() - received

    def _body(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> tuple[bytes, int]:
        inputs = []
        for name, value in (("input_ids", ids), ("attention_mask", mask)):
            tensor = self._make(name, list(value.shape), "INT64")
            tensor.set_data_from_numpy(value)
            inputs.append(tensor)
        body, size = self._client.generate_request_body(inputs)
        return body, size

    def _exchange(
        self,
        connection: _Connection,
        path: str,
        body: bytes,
        headers: dict[str, str],
        *,
        until: int,
        around: Callable[[], AbstractContextManager[object]],
    ) -> tuple[int, int | None, bytes]:
        """Send and receive; a kept connection that the server has closed meanwhile is opened anew once."""
        for attempt in (0, 1):
            left = max(0.001, (until - self._clock()) / 1e9)
            fresh = connection.sock is None
            try:
                if fresh:
                    connection.timeout = left
                    connection.connect()
                connection.sock.settimeout(left)
                with around():
                    connection.request("POST", path, body, headers)
                    response = connection.getresponse()
                    content = response.read()
            except TimeoutError as error:
                connection.close()
                raise TritonError("timeout", "Triton did not answer in time") from error
            except ConnectionRefusedError as error:
                connection.close()
                raise TritonError("refused", "nothing listens where Triton should") from error
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # Sent twice only when nothing can have come of the first: a kept connection closed before any answer.
                if attempt == 0 and not fresh and isinstance(error, ConnectionError):
                    continue
                raise TritonError("broken", f"the connection to Triton broke: {type(error).__name__}") from error
            length = response.getheader("Inference-Header-Content-Length")
            return response.status, int(length) if length and length.isdigit() else None, content
        raise AssertionError("not reached")

    def _read(self, status: int, length: int | None, content: bytes) -> NDArray[np.float32]:
        # Errors are plain JSON without the header: the status comes first.
        if status != 200:
            try:
                message = str(json.loads(content)["error"])
            except (ValueError, KeyError, TypeError):
                message = f"status {status}"
            raise TritonError(reason_of(status, message), " ".join(message.split())[:200], status)
        try:
            logits: Any = self._client.parse_response_body(content, header_length=length).as_numpy("logits")
        except Exception as error:
            raise TritonError("wrong_answer", f"Triton's answer cannot be read: {type(error).__name__}") from error
        if logits is None or logits.dtype != np.float32:
            raise TritonError("wrong_answer", "Triton's answer has no logits")
        return np.asarray(logits, dtype=np.float32)

    def close(self) -> None:
        """Close the idle connections."""
        while not self._idle.empty():
            self._idle.get_nowait().close()
