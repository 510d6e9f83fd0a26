"""`train`: fits the model and publishes its artefacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inferdeck.errors import CannotRun

__all__ = ["train_model"]


def train_model(
    out: Path,
    progress: Callable[[str, float], None],
    *,
    study: Path | None = None,
    trials: int = 50,
    seconds: float = 3600.0,
) -> dict[str, Any]:
    """Train the model into a folder, replacing what is there only when the new one is good enough.

    Args:
        out: Folder of the artefacts.
        progress: Gets the present step and the share done.
        study: Database of a search for settings, which is done or gone on with first; None: no search.
        trials: Finished trials of that study, at most.
        seconds: Time for the search, at most.

    Returns:
        The training's report.

    Raises:
        CannotRun: If it cannot be trained here, or falls below its floors.
    """
    from service.artifacts import ArtifactsMissing
    from service.training.command import TrainingError, train

    try:
        report = train(out, progress=progress, study=None if study is None else _study(study, trials, seconds))
    except (TrainingError, ArtifactsMissing) as error:
        raise CannotRun(str(error)) from error
    return {"model_dir": str(out), "report": asdict(report)}


def _study(database: Path, trials: int, seconds: float) -> Callable[[Any, Callable[[str, float], None]], Any]:
    from importlib.util import find_spec

    if find_spec("optuna") is None:
        raise CannotRun("a search needs Optuna; run `pip install 'inferdeck[pipeline]'` in this environment")
    from service.training.search import Limits, SearchError, search

    def found(corpus: Any, progress: Callable[[str, float], None]) -> Any:
        try:
            return search(corpus, database, progress, limits=Limits(trials=trials, seconds=seconds))
        except SearchError as error:
            raise CannotRun(str(error)) from error

    return found
