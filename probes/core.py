"""Which core of the recorder runs: the compiled request path, or the same thing interpreted.

The compiled one is one file beside this one, named by the hash of the sources that it was built from and by the
interpreter that it is for. So one built from other sources is never loaded: it is not looked at.

Absent    without a compiler at installation, on other platforms, or after an edit: everything works interpreted.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["CORE", "CORE_NAME", "SOURCES", "binary_path", "core_state", "load_core", "source_hash"]

VARIABLE: Final = "INFERDECK_CORE"
HERE: Final = Path(__file__).resolve().parent
# What the compiled core is made of, and the modules whose behaviour it repeats.
SOURCES: Final = (
    "_core.pyx",
    "_core_c.h",
    "_core_exchange.pxi",
    "_core_intake.pxi",
    "_core_record.pxi",
    "_core_ring.pxi",
    "asgi.py",
    "core.py",
    "intake.py",
    "layout.py",
    "plan.py",
    "record.py",
    "schema.py",
    "writer.py",
)

log = logging.getLogger("probes")


def source_hash(folder: Path = HERE) -> str:
    """Return 16 hex digits that change with every source of the core.

    Args:
        folder: Where the sources are.

    Raises:
        OSError: If one is missing.
    """
    digest = hashlib.sha256()
    for name in SOURCES:
        data = (folder / name).read_bytes()
        digest.update(b"%s %d\n" % (name.encode(), len(data)))
        digest.update(data)
    return digest.hexdigest()[:16]


def binary_path(folder: Path = HERE) -> Path:
    """Return where the compiled core of these sources lies for this interpreter, whether it is there or not.

    Args:
        folder: Where the sources are.

    Raises:
        OSError: If a source is missing.
    """
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    return folder / f"_core-{source_hash(folder)}{suffix}"


def core_state(folder: Path = HERE, environ: Mapping[str, str] = os.environ) -> tuple[str, Path | None]:
    """Return which core is to run, and its file.

    Args:
        folder: Where sources and compiled core are.
        environ: INFERDECK_CORE=interpreted leaves a compiled core alone.

    Returns:
        ``compiled`` and the file; else ``asked`` (for the interpreted one), ``stale`` (only ones of other sources or
        interpreters are there), or ``absent``, and None.
    """
    if environ.get(VARIABLE) == "interpreted":
        return "asked", None
    try:
        path = binary_path(folder)
    except OSError:
        return "absent", None
    if path.is_file():
        return "compiled", path
    return ("stale" if any(folder.glob("_core-*")) else "absent"), None


def load_core(path: Path | None) -> Any:
    """Return the compiled core's module, or None.

    Args:
        path: Its file; None for none.
    """
    if path is None:
        return None
    try:
        spec = importlib.util.spec_from_file_location("probes._core", path)
        if spec is None or spec.loader is None:
            return None
        module = importlib.util.module_from_spec(spec)
        sys.modules["probes._core"] = module
        spec.loader.exec_module(module)
    except Exception:
        # A library it needs may be missing, or the file damaged: the recorder is slower then, and not gone.
        sys.modules.pop("probes._core", None)
        log.exception("the compiled core of the recorder cannot be loaded; the interpreted one runs")
        return None
    return module


CORE: Final[Any] = load_core(core_state()[1])
CORE_NAME: Final = "interpreted" if CORE is None else "compiled"
