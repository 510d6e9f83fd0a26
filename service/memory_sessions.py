"""How many model sessions this process holds, and how many of them are of a model that it holds already.

Measures  live `onnxruntime.InferenceSession` objects, whoever made them; by model: the file's path, or its bytes' hash.
Source    the class' own constructor, which is wrapped once, before the first session is made.
Error     sessions of other runtimes, and of other processes (a model behind Triton), are not seen.
Cost      one dict entry for each session; nothing for a request.
Absent    before onnxruntime is imported there is none: 0.
Explains  a model in memory twice -> alerts/catalogue/model_loaded_twice.yaml
"""

from __future__ import annotations

import functools
import hashlib
import threading
import weakref
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Sessions", "sessions", "watch_sessions"]

_lock = threading.Lock()
_live: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Sessions:
    """The sessions of this process.

    Attributes:
        open: All that are alive.
        duplicate: Those beyond the first of each model.
    """

    open: int
    duplicate: int


def watch_sessions(runtime: Any) -> None:
    """Count the sessions that are made from now on; a second call does nothing.

    Args:
        runtime: The module onnxruntime, or what stands for it.
    """
    kind = runtime.InferenceSession
    made = kind.__init__
    if getattr(made, "counts_sessions", False):
        return

    @functools.wraps(made)
    def counted(self: Any, model: Any, *arguments: Any, **named: Any) -> None:
        made(self, model, *arguments, **named)
        with _lock:
            _live[self] = _name(model)

    counted.counts_sessions = True  # type: ignore[attr-defined]  # marks that it is wrapped
    kind.__init__ = counted


def sessions() -> Sessions:
    """Return how many there are now."""
    with _lock:
        models = Counter(_live.values())
    return Sessions(models.total(), models.total() - len(models))


def _name(model: Any) -> str:
    if isinstance(model, bytes):
        return hashlib.blake2b(model, digest_size=16).hexdigest()
    try:
        found = Path(model).stat()
    except (OSError, TypeError, ValueError):
        return repr(type(model))
    return f"{found.st_dev}:{found.st_ino}"
