"""The repository that a Triton serves: the shipped configuration, and the graphs that training wrote."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from service.artifacts import SINGLE_FILE, ArtifactsMissing, load_artifacts

__all__ = ["MODEL", "VERSIONS", "lay_out"]

MODEL = "sentiment"
VERSIONS = ("1", "2")


def lay_out(model_dir: Path, repository: Path) -> Path:
    """Write the repository anew and return its folder.

    Args:
        model_dir: Folder written by training.
        repository: Folder to write; what was there goes.

    Raises:
        ArtifactsMissing: If there is no model, or it was trained before training wrote both versions.
        ArtifactsDamaged: If the model is not what was written.
    """
    artifacts = load_artifacts(model_dir)
    if not (model_dir / SINGLE_FILE).is_file():
        raise ArtifactsMissing(
            f"{model_dir} has no {SINGLE_FILE}, which is version 1 of the repository; run `inferdeck train`"
        )
    if repository.exists():
        shutil.rmtree(repository)
    source = Path(str(files("service.model_repository"))) / MODEL / "config.pbtxt"
    for version, graph in zip(VERSIONS, (model_dir / SINGLE_FILE, artifacts.model), strict=True):
        folder = repository / MODEL / version
        folder.mkdir(parents=True, mode=0o700)
        shutil.copyfile(graph, folder / "model.onnx")
    shutil.copyfile(source, repository / MODEL / "config.pbtxt")
    return repository
