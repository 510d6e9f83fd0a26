"""Opening all ring files of a folder, when one that is damaged must not hide the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from probes.reader import RingError, RingFile, list_rings

__all__ = ["READ_ERRORS", "open_rings"]

# What a damaged, foreign, vanished or unreadable file can raise; ValueError covers damaged JSON and text.
READ_ERRORS = (RingError, OSError, ValueError)

_log = logging.getLogger(__name__)


def open_rings(ring_dir: Path) -> Iterator[RingFile | Path]:
    """Yield each ring file opened, and closed again when the next one is asked for; the path of an unreadable one."""
    for path in list_rings(ring_dir):
        try:
            ring = RingFile(path)
        except READ_ERRORS as error:
            _log.warning("unreadable ring file left out: %s", error)
            yield path
            continue
        with ring:
            yield ring
