"""`train`: fits the model and publishes its artefacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun

__all__ = ["train_model"]


def train_model(out: Path, progress: Callable[[str, float], None]) -> dict[str, Any]:
    """Train the model into a folder, replacing what is there only when the new one is good enough.

    Args:
        out: Folder of the artefacts.
        progress: Gets the present step and the share done.

    Returns:
        The training's report.

    Raises:
        CannotRun: If it cannot be trained here, or falls below its floors.
    """
    from service.artifacts import ArtifactsMissing
    from service.training.command import TrainingError, train

    try:
        report = train(out, progress=progress)
    except (TrainingError, ArtifactsMissing) as error:
        raise CannotRun(str(error)) from error
    return {"model_dir": str(out), "report": asdict(report)}
