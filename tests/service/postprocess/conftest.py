from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Return a place for a socket: short, since the path of one has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="post") as folder:
        yield Path(folder) / "p.sock"


@pytest.fixture
def real(socket_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the app as a user does, and wait until it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service.postprocess", str(socket_path)], env=os.environ, stderr=subprocess.PIPE
    )
    try:
        until = time.monotonic() + 60
        while not socket_path.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert socket_path.exists(), "it never listened"
        yield process
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()
