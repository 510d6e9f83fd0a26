"""A libnvidia-ml.so.1 built from C, which answers from scenario files: the real pynvml runs over it."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["build_stub"]


def build_stub(folder: Path) -> Path:
    """Build the library into *folder*, which then goes into LD_LIBRARY_PATH of a process that is started after it.

    Raises:
        FileNotFoundError: If there is no gcc.
        subprocess.CalledProcessError: If it does not compile.
    """
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"),
            *("-o", str(library), str(Path(__file__).with_name("stub.c"))),
        ],
        check=True,
        capture_output=True,
    )
    return library
