"""Version and commit of the running program, as every result carries them."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

__all__ = ["ROOT", "commit", "in_checkout", "version"]

# the folder that holds our packages: the checkout, or site-packages for an installed wheel
ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """Return the version of the installed distribution, or "0+unknown" when it runs from a bare folder."""
    try:
        return metadata.version("inferdeck")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def in_checkout(root: Path = ROOT) -> bool:
    """Return whether *root* is a source checkout: tests are never shipped, so their folder tells."""
    return (root / "pyproject.toml").is_file() and (root / "tests").is_dir()


def commit(root: Path = ROOT) -> str:
    """Return the commit that the code was built from, with "-dirty" when tracked files differ.

    Args:
        root: Folder of the packages.

    Returns:
        Twelve hexadecimal digits; `INFERDECK_COMMIT` where an image carries no git; "unknown" when neither is there.
    """
    git = shutil.which("git")
    # an installed wheel below somebody else's repository must not report that repository's commit
    if git is None or not in_checkout(root):
        return os.environ.get("INFERDECK_COMMIT", "unknown")
    try:
        found = subprocess.run(
            [git, "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return os.environ.get("INFERDECK_COMMIT", "unknown")
    return found.stdout.strip() or os.environ.get("INFERDECK_COMMIT", "unknown")
