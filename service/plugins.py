"""ASGI middleware named in the settings, such as the drill's programs; the service itself holds no fault code."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from service.settings import SettingsError

__all__ = ["load_middleware"]

ASGIApp = Callable[..., Any]


def load_middleware(name: str) -> Callable[[ASGIApp], ASGIApp]:
    """Return the callable that a setting names.

    Args:
        name: `path/to/file.py:callable` or `package.module:callable`; it is called with the app and returns one.

    Raises:
        SettingsError: If it cannot be had.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise SettingsError(f"middleware {name!r} must read path/to/file.py:callable or module:callable")
    try:
        module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        wrap = getattr(module, attribute)
    except Exception as error:
        raise SettingsError(f"middleware {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(wrap):
        raise SettingsError(f"middleware {name!r} is not callable")
    return wrap  # type: ignore[no-any-return]  # what it returns is judged by the first request


def _load_file(path: Path) -> ModuleType:
    """Load a file as a module of its own, whatever other files of that name there are."""
    resolved = path.resolve(strict=True)
    name = f"_service_middleware_{resolved.stem}_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs: dataclasses and pickling look their module up by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
