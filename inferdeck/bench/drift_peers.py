"""The peers of `bench drift`, each in an environment of its own: they exclude each other's versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["PEERS", "install_peer", "measure_peer"]

# With what each needs to be imported at all: evidently and nannyml resolve to a pandas that they fail with.
PEERS: Final[dict[str, tuple[str, ...]]] = {
    "evidently": ("evidently==0.7.23", "pandas==2.3.3"),
    "alibi-detect": ("alibi-detect==0.13.0",),
    "nannyml": ("nannyml==0.13.1", "pandas==2.3.3", "statsmodels"),
    "whylogs": ("whylogs==1.6.4", "pandas==2.3.3"),
    "frouros": ("frouros==0.9.0",),
}
_INSTALL_SECONDS: Final = 600
_RUN_SECONDS: Final = 300
_CHILD: Final = Path(__file__).with_name("drift_child.py")


def _python(folder: Path, name: str) -> Path:
    return folder / name / "bin" / "python"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


def install_peer(folder: Path, name: str) -> str | None:
    """Make the peer's environment unless it is there; returns why that failed, None when it is there.

    Args:
        folder: Holds one environment per peer.
        name: A key of PEERS.
    """
    if _python(folder, name).exists():
        return None
    steps = (
        [sys.executable, "-m", "venv", str(folder / name)],
        [str(_python(folder, name)), "-m", "pip", "install", "--quiet", "scipy", *PEERS[name]],
    )
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"not installed: {type(error).__name__}"
        if done.returncode:
            return f"not installed: {_last_line(done.stderr)}"
    return None


def measure_peer(folder: Path, name: str, samples: Path, rounds: int) -> dict[str, Any]:
    """Return what the peer's own process measured; `windows` is empty, with a `reason`, where it could not.

    Args:
        folder: Holds one environment per peer.
        name: A key of PEERS.
        samples: File with reference and windows.
        rounds: Checks of each kind.
    """
    python = _python(folder, name)
    if not python.exists():
        return {"windows": {}, "reason": "not installed: run with --install-peers"}
    argv = [str(python), str(_CHILD), name, str(samples), str(rounds)]
    environment = {**os.environ, "WHYLOGS_NO_ANALYTICS": "1", "NML_DISABLE_USAGE_LOGGING": "1", "DO_NOT_TRACK": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False, env=environment, cwd=folder
        )
        found: dict[str, Any] = json.loads(_last_line_of_json(done.stdout))
    except subprocess.TimeoutExpired:
        return {"windows": {}, "reason": f"took longer than {_RUN_SECONDS} s"}
    except ValueError:
        return {"windows": {}, "reason": f"failed: {_last_line(done.stderr)}"}
    return found


def _last_line_of_json(text: str) -> str:
    """Return the last line: some peers greet on stdout."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
