"""An OTLP/HTTP sink as a process of its own: swallows POSTs, counts spans per first part of the path.

`POST /<who>/v1/traces` is answered at once; bodies are counted when `GET /<who>/count` asks, so that counting costs
nothing while a window runs. The first line on stdout is `{"port": N}`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections import defaultdict
from typing import cast

from inferdeck.bench.otlp_count import count_spans

__all__ = ["Counts", "Sink", "main"]

# bounds what one sender can make us hold; above it bodies are counted as they come
MAX_PENDING_BYTES = 256 * 1024 * 1024
MAX_HEAD_BYTES = 16 * 1024


class Counts:
    """What one sender posted: bodies not counted yet, and the sums of those that were."""

    def __init__(self) -> None:
        self.pending: list[tuple[bytes, bool]] = []
        self.pending_bytes = 0
        self.spans = self.roots = self.posts = self.bytes = self.broken = 0

    def add(self, body: bytes, *, compressed: bool) -> None:
        """Keep one body for counting."""
        self.posts += 1
        self.bytes += len(body)
        self.pending.append((body, compressed))
        self.pending_bytes += len(body)
        if self.pending_bytes > MAX_PENDING_BYTES:
            self.settle()

    def settle(self) -> dict[str, int]:
        """Count what is pending and return the sums."""
        for body, compressed in self.pending:
            try:
                spans, roots = count_spans(gzip.decompress(body) if compressed else body)
            except (ValueError, OSError, EOFError):
                self.broken += 1
                continue
            self.spans += spans
            self.roots += roots
        self.pending.clear()
        self.pending_bytes = 0
        return {name: getattr(self, name) for name in ("spans", "roots", "posts", "bytes", "broken")}


class Sink(asyncio.Protocol):
    """One connection: enough of HTTP/1.1 for an OTLP sender that states its content length."""

    def __init__(self, counts: defaultdict[str, Counts]) -> None:
        self.counts = counts
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for answers."""
        # uvloop's transports are not registered with asyncio's abstract classes
        self.transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Take every whole request that has arrived."""
        self.buffer += data
        while (cut := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:cut]).decode("latin-1").split("\r\n")
            headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
            length = int(headers.get("content-length") or 0)
            if len(self.buffer) < cut + 4 + length:
                return
            body = bytes(self.buffer[cut + 4 : cut + 4 + length])
            del self.buffer[: cut + 4 + length]
            self.answer(head[0], headers, body)
        if len(self.buffer) > MAX_HEAD_BYTES:
            self.transport.close()

    def answer(self, request: str, headers: dict[str, str], body: bytes) -> None:
        """Keep a body, or answer with the counts."""
        method, _, rest = request.partition(" ")
        who = rest.split(" ")[0].strip("/").split("/")[0]
        text = b""
        if method == "POST":
            self.counts[who].add(body, compressed=headers.get("content-encoding") == "gzip")
        else:
            text = json.dumps(self.counts[who].settle()).encode()
        kind = "application/x-protobuf" if method == "POST" else "application/json"
        reply = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text
        self.transport.write(reply)


async def _serve() -> None:
    counts: defaultdict[str, Counts] = defaultdict(Counts)
    server = await asyncio.get_running_loop().create_server(lambda: Sink(counts), "127.0.0.1", 0)
    sys.stdout.write(json.dumps({"port": server.sockets[0].getsockname()[1]}) + "\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> int:
    """Serve until SIGTERM."""
    import uvloop

    uvloop.run(_serve())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
