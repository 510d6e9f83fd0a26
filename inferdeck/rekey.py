"""`rekey`: another secret for the hashes by which sessions are found, and which keys are still known."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

from inferdeck.errors import CannotRun
from inferdeck.look_up import ring_folder
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings

__all__ = ["run_rekey"]


def run_rekey(settings: StackSettings) -> Outcome:
    """Put another secret in place.

    Args:
        settings: Folders.

    Raises:
        CannotRun: If it cannot be written.
    """
    from probes.session_key import read_keys, rotate, secret_path

    # The environment's file wins; the state folder is that of the settings, which a worker gets as its environment.
    path = secret_path({**os.environ, "INFERDECK_STATE_DIR": str(settings.state_path)})
    assert path is not None  # noqa: S101  # a state folder was given
    try:
        fingerprint = rotate(path)
    except OSError as error:
        raise CannotRun(
            f"cannot write {path}: {error.strerror or error}", "run it as the user of the service"
        ) from error
    payload: dict[str, Any] = {
        "path": str(path),
        "fingerprint": fingerprint,
        "keys_beside_rows": len(read_keys(ring_folder(settings))),
    }
    return Outcome(payload, 0, lambda console: _show(console, payload))


def _show(console: Console, payload: dict[str, Any]) -> None:
    console.print(f"new key {payload['fingerprint']} in {payload['path']}", markup=False, soft_wrap=True)
    console.print("workers take it up at their next start; sessions of before are still found and erased", markup=False)
