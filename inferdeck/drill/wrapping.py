"""Inside the service process: puts a program's `wrap` around the app. Named in the service's `middleware` setting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from inferdeck.drill.program import Armed, load_module

__all__ = ["FLAG_VARIABLE", "HOOK_VARIABLE", "PROGRAM_VARIABLE", "SEED_VARIABLE", "wrap"]

PROGRAM_VARIABLE = "INFERDECK_DRILL_PROGRAM"
HOOK_VARIABLE = "INFERDECK_DRILL_HOOK"
FLAG_VARIABLE = "INFERDECK_DRILL_FLAG"
SEED_VARIABLE = "INFERDECK_DRILL_SEED"


def wrap(app: Any) -> Any:
    """Return *app* inside the program's hook.

    Args:
        app: The ASGI app below the recorder.

    Raises:
        KeyError: If the drill's environment is missing: this is for drills alone.
        CannotRun: If the program cannot be loaded.
    """
    seed = os.environ.get(SEED_VARIABLE)
    module = load_module(Path(os.environ[PROGRAM_VARIABLE]), seed=int(seed) if seed else None)
    armed = Armed(Path(os.environ[FLAG_VARIABLE]))
    return getattr(module, os.environ[HOOK_VARIABLE])(app, armed)
