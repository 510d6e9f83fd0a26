"""Probes of a manifest, carried out against the running service as a kubelet would."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from inferdeck.http_get import Unreachable, get

__all__ = ["probe_of"]

# By name or number in deploy/k8s; the embedded stack has other ports.
ADMIN: Final = ("admin", 8081)


def probe_of(service_url: str, admin_url: str) -> Callable[[dict[str, Any]], bool]:
    """Return what carries out httpGet and tcpSocket probes.

    Args:
        service_url: Where requests are taken.
        admin_url: The admin port.
    """

    def succeeds(probe: dict[str, Any]) -> bool:
        seconds = float(probe.get("timeoutSeconds", 1))
        asked = probe.get("httpGet") or probe.get("tcpSocket") or {}
        base = admin_url if asked.get("port") in ADMIN else service_url
        if "httpGet" in probe:
            with suppress(Unreachable):
                return 200 <= get(f"{base}{asked.get('path', '/')}", seconds)[0] < 400
            return False
        address = urlsplit(base)
        with suppress(OSError):
            socket.create_connection((str(address.hostname), int(address.port or 80)), seconds).close()
            return True
        return False

    return succeeds
