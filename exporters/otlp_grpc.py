"""OTLP over gRPC: the same bytes as over HTTP in one unary call, its status told in the words of HTTP.

The codes that may be tried again, and what a server may ask to wait, are those of the OTLP specification (OTLP/gRPC,
Failures). Needs grpcio (the extra `otlp-grpc`).
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import grpc

from exporters.otlp_http import rejected_spans
from exporters.protobuf_read import read_fields
from exporters.sender import Answer

__all__ = ["GrpcTransport", "retry_delay_seconds"]

METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEFAULT_PORT: Final = 4317
# An answer holds a count and a sentence.
_MOST_BYTES: Final = 64 << 10
_LONGEST_WAIT_SECONDS: Final = 3600.0
# Told as "no answer", which is tried again: whoever was asked may not have taken the body.
_RETRY: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
# C, Go and Java say it in these words; there is no code of its own for it.
_TOO_LARGE: Final = ("larger than max", "exceeds maximum size")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MOST_BYTES),
    # As over HTTP, where the standard library asks nobody's proxy.
    ("grpc.enable_http_proxy", 0),
    # Its own two minutes would outlast the time for which spans are tried to be delivered.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5000),
)


class GrpcTransport:
    """Sends bodies to a target's TraceService."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: dict[str, str] | None = None,
        timeout_seconds: float = 10.0,
        compress: bool = False,
    ) -> None:
        """Prepare; connects at the first post.

        Args:
            endpoint: `http://host:port`, or `https://` for TLS by the system's authorities; port 4317 by default.
            headers: Sent with each body, as metadata.
            timeout_seconds: Longest wait for connecting and the answer.
            compress: Whether bodies are gzipped, by gRPC itself.

        Raises:
            ValueError: If *endpoint* names no host, or a path, which gRPC has no place for; or a header cannot be one.
        """
        parts = urlsplit(endpoint)
        if not parts.hostname:
            raise ValueError(f"OTLP endpoint {endpoint!r} names no host; write http://127.0.0.1:{DEFAULT_PORT}")
        if parts.path.strip("/"):
            raise ValueError(f"OTLP endpoint {endpoint!r} has a path, and gRPC has none; is it one for http/protobuf?")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        target = f"dns:///{host}:{parts.port or DEFAULT_PORT}"
        self._channel = (
            grpc.secure_channel(target, grpc.ssl_channel_credentials(), options=_OPTIONS)
            if parts.scheme == "https"
            else grpc.insecure_channel(target, options=_OPTIONS)
        )
        self._call = self._channel.unary_unary(METHOD)
        self._timeout = timeout_seconds
        self._compression = grpc.Compression.Gzip if compress else grpc.Compression.NoCompression
        self._metadata = [(name.lower(), value) for name, value in (headers or {}).items()]
        for name, value in self._metadata:
            if not (name + value).isascii() or name.endswith("-bin"):
                raise ValueError(f"OTLP header {name!r} cannot be sent over gRPC: ASCII alone, and no name in -bin")

    def post(self, body: bytes, *, compressed: bool) -> Answer:
        """Return the target's answer; status 0 when there was none.

        Args:
            body: An ExportTraceServiceRequest.
            compressed: Never: gRPC compresses itself.
        """
        if compressed:
            raise ValueError("gRPC compresses bodies itself")
        try:
            content = self._call(body, timeout=self._timeout, metadata=self._metadata, compression=self._compression)
        except grpc.RpcError as error:
            return _failed(error)
        return Answer(200, rejected_spans=rejected_spans(content))

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _failed(error: Any) -> Answer:
    """Return what a call's failure means for the body."""
    code, details = error.code().name, str(error.details() or "")
    if code == "RESOURCE_EXHAUSTED" and any(words in details for words in _TOO_LARGE):
        return Answer(413)
    delay = next(
        (
            retry_delay_seconds(value)
            for key, value in error.trailing_metadata() or ()
            if key == "grpc-status-details-bin" and isinstance(value, bytes)
        ),
        None,
    )
    if code in _RETRY:
        return Answer(0, retry_after_seconds=delay or 0.0)
    # Exhausted for a while if it says for how long, else for good.
    if code == "RESOURCE_EXHAUSTED" and delay is not None:
        return Answer(429, retry_after_seconds=delay)
    return Answer(400)


def retry_delay_seconds(status: bytes) -> float | None:
    """Return the delay of the RetryInfo in a google.rpc.Status, at most an hour; None when it holds none.

    Args:
        status: The encoded message: field 3 is a list of Any, whose field 1 is its type and field 2 its value; a
            RetryInfo has a Duration in field 1, of seconds (1) and nanoseconds (2).
    """
    for number, detail in read_fields(status):
        held = dict(read_fields(detail)) if number == 3 and isinstance(detail, bytes) else {}
        kind, value = held.get(1), held.get(2, b"")
        if isinstance(kind, bytes) and kind.endswith(b"google.rpc.RetryInfo") and isinstance(value, bytes):
            delay = dict(read_fields(value)).get(1, b"")
            parts = dict(read_fields(delay)) if isinstance(delay, bytes) else {}
            seconds, nanos = parts.get(1, 0), parts.get(2, 0)
            if isinstance(seconds, int) and isinstance(nanos, int) and seconds < 2**63:
                return min(seconds + min(nanos, 999_999_999) / 1e9, _LONGEST_WAIT_SECONDS)
    return None
