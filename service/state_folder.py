"""The service's own folder below the state folder: dead letters, audit, the canary's state, estimates of memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["state_folder"]

_NAME: Final = "service"


def state_folder() -> Path | None:
    """Return the folder, which may not be there yet; None where INFERDECK_STATE_DIR names no state folder."""
    state = os.environ.get("INFERDECK_STATE_DIR")
    return Path(state) / _NAME if state else None
