"""Behind `inferdeck canary`: another version of the model gets a share of the requests, and loses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferdeck.errors import CannotRun
from inferdeck.result import Outcome
from inferdeck.settings import StackSettings
from service.artifacts import ArtifactsError, load_artifacts
from service.canary.state import FOLDER, CanaryState, CanaryStore, StateUnusable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["roll_back", "set_canary", "show_canary"]

_TRITON = ("triton:1", "triton:2")


def _store(settings: StackSettings) -> CanaryStore:
    return CanaryStore(settings.state_path / "service" / FOLDER)


def _mend(store: CanaryStore) -> str:
    return f"mend or remove {store.path}; the service sends nothing to a canary meanwhile"


def _outcome(store: CanaryStore, state: CanaryState, **further: Any) -> Outcome:
    payload = {
        "file": str(store.path),
        "model": state.model,
        "share": state.share,
        "rolled_back": state.rolled_back,
        "by": state.by,
        "reason": state.reason,
        "changed_unix_ns": state.changed_unix_ns,
        "generation": state.generation,
        "rollbacks": dict(state.rollbacks),
        **further,
    }

    def show(console: Console) -> None:
        if state.model is None:
            console.print("no canary: one version of the model answers", markup=False)
        else:
            told = f"rolled back: {state.reason}" if state.rolled_back else f"by {state.by}"
            console.print(
                f"{state.share:.0%} of the sessions go to {state.model} ({told})", markup=False, soft_wrap=True
            )
        counts = ", ".join(f"{reason} {count}" for reason, count in state.rollbacks.items() if count)
        console.print(f"rollbacks so far: {counts or 'none'}", markup=False)

    return Outcome(payload, 0, show)


def show_canary(settings: StackSettings) -> Outcome:
    """Show what is wanted; what workers make of it is in their metrics.

    Args:
        settings: Where the state folder is.

    Raises:
        CannotRun: If the state cannot be read.
    """
    store = _store(settings)
    try:
        return _outcome(store, store.read() or CanaryState())
    except (StateUnusable, OSError) as error:
        raise CannotRun(f"cannot read the canary's state: {error}", _mend(store)) from error


def set_canary(settings: StackSettings, *, share: float | None, model: str | None) -> Outcome:
    """Set share or model.

    Args:
        settings: Where the state folder is.
        share: Share of the sessions, 0..1; None leaves it.
        model: Folder of a model, or triton:1, triton:2; None leaves it.

    Raises:
        CannotRun: If the folder holds no whole model, there is no model to give a share, or it cannot be written.
    """
    if model is not None and model not in _TRITON:
        folder = Path(model).expanduser().absolute()
        try:
            load_artifacts(folder)
        except ArtifactsError as error:
            raise CannotRun(f"no canary: {error}", "inferdeck train --out DIR writes one") from error
        model = str(folder)
    store = _store(settings)
    try:
        before = store.read() or CanaryState()
        if share and not (model or before.model):
            raise CannotRun(
                "there is no canary to give a share", "name it: inferdeck canary set --model DIR --share 0.1"
            )
        state = store.set(share=share, model=model)
    except (StateUnusable, OSError) as error:
        raise CannotRun(f"cannot change the canary's state: {error}", _mend(store)) from error
    return _outcome(store, state, before={"model": before.model, "share": before.share})


def roll_back(settings: StackSettings) -> Outcome:
    """Take the share back; running workers see it within a second.

    Args:
        settings: Where the state folder is.

    Raises:
        CannotRun: If it cannot be written.
    """
    store = _store(settings)
    try:
        before = store.read() or CanaryState()
        if before.model is None:
            return replace(_outcome(store, before, done=False), code=1)
        done = store.roll_back("operator", "by an operator")
        return _outcome(store, store.read() or CanaryState(), done=done)
    except (StateUnusable, OSError) as error:
        raise CannotRun(f"cannot change the canary's state: {error}", _mend(store)) from error
