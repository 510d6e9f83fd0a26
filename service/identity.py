"""Which build is running: version and commit, as metrics, rows and health tell them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

__all__ = ["commit", "version"]

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def version(distribution: str = "inferdeck") -> str:
    """Return the installed version, or "unknown" in a checkout that was never installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def commit(environment: Mapping[str, str] = os.environ, root: Path | None = None) -> str:
    """Return the commit: what the build wrote into INFERDECK_COMMIT, else the checkout's, else "unknown".

    Args:
        environment: Where to look for the variable.
        root: The checkout; the folder above this package unless told.
    """
    told = environment.get("INFERDECK_COMMIT", "")
    if _COMMIT.fullmatch(told):
        return told[:12]
    folder = root or Path(__file__).resolve().parent.parent
    if not (folder / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = done.stdout.strip()
    return found if _COMMIT.fullmatch(found) else "unknown"
