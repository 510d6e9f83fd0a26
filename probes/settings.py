"""Settings of the recorder, and what identifies the program that it records."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Identity", "RecorderSettings", "default_ring_dir"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Fingerprints by which rows of different builds, configurations and models are told apart; "" if unknown.

    Attributes:
        build: The code, such as a commit.
        config: The configuration in force.
        model: The model's files.
        driver: The accelerator's driver.
        host: Name of the machine.
    """

    build: str = ""
    config: str = ""
    model: str = ""
    driver: str = ""
    host: str = field(default_factory=socket.gethostname)


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """Sizes and periods of one worker's recorder.

    Attributes:
        ring_rows: Rows kept per worker; with ``row_bytes`` this is the memory it costs (16 MiB by default).
        row_bytes: Bytes of one row with its frame; what limits stages and attributes.
        open_slots: Requests in flight that can be told apart.
        dead_rings: Ring files of dead workers that may stay in the folder when a worker starts.
        sensors: Whether to watch event loop, garbage collector and process.
        beat_s: Period of the heartbeat thread, seconds.
        status_s: Period at which the status page is written, seconds.
        tick_s: Period of the event loop's tick, seconds.
        blocked_s: Lag from which the loop counts as blocked and its stack is taken, seconds.
        retry_s: After how long a worker that could not have a file tries again, seconds.
    """

    ring_rows: int = 16384
    row_bytes: int = 1024
    open_slots: int = 1024
    dead_rings: int = 16
    sensors: bool = True
    beat_s: float = 0.025
    status_s: float = 1.0
    tick_s: float = 0.02
    blocked_s: float = 0.1
    retry_s: float = 30.0


def default_ring_dir(
    service: str,
    environ: Mapping[str, str] = os.environ,
    shared_memory: Path = Path("/dev/shm"),  # noqa: S108
) -> Path:
    """Return the folder of the ring files that docs/architecture.md section 1 names.

    Args:
        service: Stands in for the stack's name.
        environ: INFERDECK_RING_DIR wins; INFERDECK_STATE_DIR is where rings go without a shared memory folder.
        shared_memory: The system's tmpfs.
    """
    if environ.get("INFERDECK_RING_DIR"):
        return Path(environ["INFERDECK_RING_DIR"])
    if shared_memory.is_dir():
        return shared_memory / f"inferdeck-{os.geteuid()}" / service
    return Path(environ.get("INFERDECK_STATE_DIR") or ".inferdeck") / "rings" / service
