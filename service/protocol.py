"""uvicorn's HTTP protocol with bounds: a head in bytes and time, and how many requests wait on a connection."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from probes.bounded_head import BoundedHead

__all__ = ["BoundedHeadProtocol"]


class BoundedHeadProtocol(BoundedHead, HttpToolsProtocol):  # type: ignore[misc]  # the base names what it needs of uvicorn
    """One connection of the service or its admin port; the bounds are `probes.bounded_head`'s."""
