"""The model in a folder, trained first when there is none.

It stands apart from service/artifacts.py so that reading a model knows nothing of training one; what training needs is
imported only when a model is missing.
"""

from __future__ import annotations

from pathlib import Path

from service.artifacts import Artifacts, ArtifactsMissing, Progress, load_artifacts

__all__ = ["ensure_model"]


def ensure_model(folder: Path, progress: Progress) -> Artifacts:
    """Return the model in *folder*, training it first when there is none.

    Of several processes that find none, one trains and the others wait for it.

    Args:
        folder: Where the model is or shall be.
        progress: Called while training, from this thread.

    Raises:
        ArtifactsMissing: If it is missing and cannot be trained here.
        ArtifactsDamaged: If there is one that is damaged; it is left for a person to look at.
    """
    try:
        return load_artifacts(folder)
    except ArtifactsMissing:
        from service.training.command import TrainingError, train_if_missing

        try:
            train_if_missing(folder, progress=progress)
        except TrainingError as error:
            raise ArtifactsMissing(f"no model in {folder}, and it cannot be trained: {error}") from error
    return load_artifacts(folder)
