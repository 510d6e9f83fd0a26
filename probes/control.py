"""The control page: what the exporter tells the services of a folder. It expires; stale means neutral.

Bounded   64 KiB; a larger, damaged, foreign or expired page reads as an empty one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from probes.private_file import write_private

__all__ = ["CONTROL_NAME", "read_control", "write_control"]

CONTROL_NAME: Final = "control"
MAX_BYTES: Final = 1 << 16


def write_control(
    directory: str | os.PathLike[str], values: Mapping[str, Any], ttl_s: float, now_ns: int | None = None
) -> None:
    """Replace the folder's control page, at once for every reader.

    Args:
        directory: The folder of the ring files.
        values: JSON values, such as a drift weight and a keep budget.
        ttl_s: Seconds until they expire.
        now_ns: Wall clock, ns since 1970.

    Raises:
        OSError: If the folder cannot be written.
        ValueError: If the page would be over 64 KiB or holds what JSON cannot.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    page = {**values, "written_unix_ns": now_ns, "expires_unix_ns": now_ns + int(ttl_s * 1e9)}
    body = json.dumps(page, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_BYTES:
        raise ValueError(f"a control page of {len(body)} bytes is over {MAX_BYTES}")
    write_private(Path(directory) / CONTROL_NAME, body)


def read_control(directory: str | os.PathLike[str], now_ns: int | None = None) -> dict[str, Any]:
    """Return the folder's control page, or an empty one if there is none in force.

    Args:
        directory: The folder of the ring files.
        now_ns: Wall clock, ns since 1970.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    try:
        fd = os.open(Path(directory) / CONTROL_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            body = file.read(MAX_BYTES + 1)
        page = json.loads(body) if len(body) <= MAX_BYTES else {}
        # A second of grace for clocks that differ a little; more from the future is a clock that was set back.
        in_force = (
            isinstance(page, dict) and page["written_unix_ns"] <= now_ns + 10**9 and now_ns < page["expires_unix_ns"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return page if in_force else {}
