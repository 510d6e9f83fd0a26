"""The folder of the only service that records without a stack: followed where no variable names one.

A service that is attached by three lines records below one private folder under its own name, which an exporter beside
it cannot know.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from probes.folder import KEY_NAME
from probes.reader import list_rings
from probes.settings import default_ring_dir

__all__ = ["SeveralFoldersError", "lone_ring_dir", "lone_rings_parent"]

# Stacks and drills name their folders to their own exporters and triage services.
_OF_A_STACK: Final = re.compile(r"(stack|run)-[0-9a-f]{8}")
_MOST_NAMED: Final = 5
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  where the recorder writes by default


class SeveralFoldersError(ValueError):
    """Several services have recorded: which one is meant must be said; the message names them and the variable."""


def lone_rings_parent(environ: Mapping[str, str] = os.environ, shared_memory: Path = _SHARED_MEMORY) -> Path:
    """Return the folder below which services record that were told no folder.

    Args:
        environ: The recorder's variables.
        shared_memory: The system's tmpfs.
    """
    unset = {name: value for name, value in environ.items() if name != "INFERDECK_RING_DIR"}
    return default_ring_dir("any", unset, shared_memory).parent


def lone_ring_dir(environ: Mapping[str, str] = os.environ, shared_memory: Path = _SHARED_MEMORY) -> Path | None:
    """Return the only folder in which a service without a stack has recorded; None while there is none.

    Args:
        environ: The recorder's variables.
        shared_memory: The system's tmpfs.

    Raises:
        SeveralFoldersError: If there are several.
    """
    parent = lone_rings_parent(environ, shared_memory)
    try:
        names = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return None
    found = [parent / name for name in names if not _OF_A_STACK.fullmatch(name) and _recorded(parent / name)]
    if len(found) > 1:
        told = ", ".join(folder.name for folder in found[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
        raise SeveralFoldersError(f"several services record below {parent} ({told}): set INFERDECK_RING_DIR to one")
    return found[0] if found else None


def _recorded(folder: Path) -> bool:
    """Return whether a folder is of a recorder of this user's."""
    try:
        # Another user's rows could tell us anything, and are not ours to show.
        return folder.stat().st_uid == os.geteuid() and ((folder / KEY_NAME).exists() or bool(list_rings(folder)))
    except OSError:
        return False
