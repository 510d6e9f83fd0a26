"""What `doctor` says of Triton: whether the stack that is asked for can have one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inferdeck.checks import Check
from inferdeck.settings import StackSettings

__all__ = ["triton"]


def triton(settings: StackSettings, folder: Path | None = None) -> Iterator[Check]:
    """Say whether Triton's environment is there; without one it is only missed where the backend is Triton.

    Args:
        settings: The backend.
        folder: The environment; the tools folder's unless told.
    """
    from inferdeck.stack.triton import triton_folder
    from service.artifacts import SINGLE_FILE
    from service.triton.home import Home

    home = Home(folder or triton_folder())
    asked = settings.backend == "triton"
    mend = "inferdeck triton install"
    if (why := home.lacks()) is not None:
        told = why.partition(";")[0]
        yield Check(
            "triton", "fail" if asked else "absent", told, mend if asked else f"only for a backend of it: {mend}"
        )
    elif asked and not (settings.model_path / SINGLE_FILE).is_file():
        yield Check(
            "triton",
            "fail",
            f"{settings.model_path} has no {SINGLE_FILE}, version 1 of the repository",
            "inferdeck train",
        )
    else:
        yield Check("triton", "ok", f"2.51 in {home.folder}")
