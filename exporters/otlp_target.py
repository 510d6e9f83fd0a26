"""How spans travel to a target: OTLP over HTTP, or over gRPC where that is set."""

from __future__ import annotations

from typing import Final

from exporters.otlp_http import HttpTransport, parse_headers
from exporters.sender import Transport

__all__ = ["GRPC", "HTTP", "PROTOCOLS", "open_transport"]

# OpenTelemetry's words (OTEL_EXPORTER_OTLP_PROTOCOL).
HTTP: Final = "http/protobuf"
GRPC: Final = "grpc"
PROTOCOLS: Final = (HTTP, GRPC)


def open_transport(
    protocol: str, endpoint: str, *, headers: str = "", timeout_seconds: float = 10.0, compress: bool = False
) -> Transport:
    """Return what posts bodies to a target; it connects at the first.

    Args:
        protocol: One of `PROTOCOLS`.
        endpoint: `http://host:port` or `https://host:port`; for HTTP with a path if the target has one.
        headers: `name=value,name=value`, sent with each body.
        timeout_seconds: Longest wait for an answer.
        compress: Whether gRPC compresses; bodies for HTTP come compressed.

    Raises:
        ValueError: If the endpoint or the headers are none, or gRPC's library is not installed.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"OTLP protocol {protocol!r} is none; there are {' and '.join(PROTOCOLS)}")
    named = parse_headers(headers)
    if protocol == HTTP:
        return HttpTransport(endpoint, headers=named, timeout_seconds=timeout_seconds)
    try:
        from exporters.otlp_grpc import GrpcTransport
    except ImportError as error:
        raise ValueError(
            f"spans over gRPC need grpcio, which cannot be loaded ({error}): pip install 'inferdeck[otlp-grpc]', or "
            f"set INFERDECK_EXPORTER_OTLP_PROTOCOL={HTTP}"
        ) from error
    return GrpcTransport(endpoint, headers=named, timeout_seconds=timeout_seconds, compress=compress)
