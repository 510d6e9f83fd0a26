"""Which model answers: the linear one that every installation trains, or the transformer that is shipped."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from service.artifacts import Artifacts, ArtifactsError
from service.backend import BackendError, OnnxBackend
from service.device import Wanted
from service.loading import NotEnoughMemory, load_onnx
from service.settings import Settings

__all__ = ["TRANSFORMER_FOLDER", "load_chosen"]

TRANSFORMER_FOLDER: Final = Path(__file__).parent / "transformer" / "model"
"""Made by `python -m service.transformer.train`, which nobody needs to run."""

_log = logging.getLogger("service.chosen_model")


def load_chosen(settings: Settings, transformer: Path = TRANSFORMER_FOLDER) -> tuple[OnnxBackend, Artifacts]:
    """Return the model that the settings name; the linear one where the transformer cannot be had.

    Args:
        settings: The settings.
        transformer: Folder of the transformer.

    Raises:
        ArtifactsMissing, ArtifactsDamaged, NotEnoughMemory, BackendError: As `load_onnx`, for the linear model.
        WrongDevice: As `load_onnx`, for either.
    """
    # Beside Triton's, the model in this process stands in for it while Triton, and maybe its GPU, is not there.
    device: Wanted = "cpu" if settings.backend == "triton" else settings.model_device
    if settings.model == "transformer":
        try:
            return load_onnx(transformer, settings.memory_reserve_bytes, device, settings.tokenizer_cache_texts)
        except (ArtifactsError, BackendError, NotEnoughMemory) as error:
            _log.error("the transformer cannot be loaded: %s; the linear model answers in its place", error)
    return load_onnx(settings.model_dir, settings.memory_reserve_bytes, device, settings.tokenizer_cache_texts)
