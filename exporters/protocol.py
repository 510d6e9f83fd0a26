"""uvicorn's HTTP protocol with bounds, for ports that scrapers and senders use: exporter and triage.

Without them some dozens of half-open connections keep such a port at 503, and nobody watches the service any more.
"""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from probes.bounded_head import BoundedHead

__all__ = ["MOST_CONNECTIONS", "BoundedHeadProtocol"]

# Each may hold a read of the socket (256 KiB) and a head (64 KiB): 80 MiB in all, while a handful is usual.
MOST_CONNECTIONS: Final = 256


class BoundedHeadProtocol(BoundedHead, HttpToolsProtocol):  # type: ignore[misc]  # the base names what it needs of uvicorn
    """One connection; programs send their heads at once, so little patience is needed."""

    head_seconds = 2.0
